-- SPDX-License-Identifier: MIT
-- Removes from a journal what both cursors have passed.
-- KEYS: journal, cursor, owner
-- ARGV: our daemon's name, how many ms an entry stays at least
-- Reply: entries left, or -1 when the partition is no longer ours
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return -1 end
local at = redis.call('HMGET', KEYS[2], 'relay', 'ledger')
if at[1] and at[2] then
  local function parse(id)
    local ms, n = string.match(id, '^(%d+)-(%d+)$')
    return tonumber(ms), tonumber(n)
  end
  local m1, n1 = parse(at[1])
  local m2, n2 = parse(at[2])
  local slower = (m1 < m2 or (m1 == m2 and n1 < n2)) and at[1] or at[2]
  local keep = tonumber(redis.call('TIME')[1]) * 1000 - tonumber(ARGV[2])
  if ARGV[2] ~= '0' and keep < math.min(m1, m2) then slower = string.format('%.0f-0', keep) end
  -- An entry at the cursor itself is done with, too: it goes when the cursor moves on.
  redis.call('XTRIM', KEYS[1], 'MINID', '~', slower, 'LIMIT', 10000)
end
return redis.call('XLEN', KEYS[1])

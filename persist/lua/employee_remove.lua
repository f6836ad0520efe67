-- SPDX-License-Identifier: MIT
-- Removes an employee, with all memberships. His history stays; so do punches that are not closed yet, and their row
-- will be written.
-- KEYS: dir, emps, day maps of today and tomorrow, journal of the department's partition, {org}:user_teams:<employee>
--   (the anchor: members of the teams carry its tag and are derived)
-- ARGV: employee, the department that the caller believes he is in, journal record, prefix of the tree's keys
-- Reply: O done; R<dept> he is in that department now, ask again; U no such employee
local now = redis.call('GET', KEYS[1])
if not now then return 'U' end
if now ~= ARGV[2] then return 'R' .. now end
local teams = redis.call('SMEMBERS', KEYS[6])
-- Whatever could be of another type is asked before the first write.
redis.call('HLEN', KEYS[2])
local expected = {}
for i = 3, 4 do expected[i] = redis.call('HGET', KEYS[i], ARGV[1]) == '' end
for _, team in ipairs(teams) do redis.call('SCARD', ARGV[4] .. 'members:' .. team) end
redis.call('XADD', KEYS[5], '*', 'e', ARGV[3])
if #teams > 0 then
  local left, now_ms = {}, string.match(ARGV[3], '%d+$')
  for _, team in ipairs(teams) do
    left[#left + 1] = 'e'
    left[#left + 1] = 'J|leave|' .. team .. '|' .. ARGV[1] .. '|' .. now_ms
  end
  redis.call('SET', ARGV[4] .. 'last', redis.call('XADD', ARGV[4] .. 'journal', '*', unpack(left)))
end
redis.call('DEL', KEYS[1])
redis.call('HDEL', KEYS[2], ARGV[1])
for i = 3, 4 do
  if expected[i] then redis.call('HDEL', KEYS[i], ARGV[1]) end
end
for _, team in ipairs(teams) do redis.call('SREM', ARGV[4] .. 'members:' .. team, ARGV[1]) end
redis.call('DEL', KEYS[6])
return 'O'

-- SPDX-License-Identifier: MIT
-- Sets employees: hires, renames, moves.
-- KEYS, nine an event: dir; dept hash of the new department; emps of the new one; its day maps of today and
--   tomorrow; emps of the old one and its day maps of today and tomorrow (the new one's again where there is no old
--   one); journal of the new department's partition
-- ARGV, seven an event: employee, name or '' (keep), 1 when a name was given, the department that the caller believes
--   he is in ('' = none), the new department ('' = keep the old one or, for a new employee, none: refused), journal
--   record's head, 1 when he must exist already
-- Reply: one line an event, joined by \n: O done; R<dept> he is in that department now ('' = in none), ask again;
--   T no such department; U no such employee; E<text>
-- A move takes him out of the old department's maps where he has not punched, and into the new one's; punches stay
-- where they were made, so that the day has one row and nobody becomes absent by moving.
local call, pcall = redis.call, redis.pcall
local out = {}

local function one(k, a)
  local dir, dept, emps, old = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 6]
  local id, name, named, believed, new, head, must = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5],
    ARGV[a + 6], ARGV[a + 7]
  local now = pcall('GET', dir)
  if type(now) == 'table' then return 'E' .. now.err end
  if (now or '') ~= believed then return 'R' .. (now or '') end
  if must == '1' and not now then return 'U' end
  local exists = pcall('HGET', dept, 'id')
  if type(exists) == 'table' then return 'E' .. exists.err end
  if not exists then return 'T' end

  local record, there = now and pcall('HGET', old, id), pcall('HEXISTS', emps, id)
  for _, got in ipairs({ record or false, there }) do
    if type(got) == 'table' then return 'E' .. got.err end
  end
  local head4 = '|||'
  local oldname = ''
  if record then
    head4, oldname = string.match(record, '^([^|]*|[^|]*|[^|]*|)(.*)$')
    if not head4 then return 'Ethe record of this employee is damaged' end
  end
  if named ~= '1' then name = oldname end
  local moved = now and now ~= new
  if record and not moved and name == oldname then return 'O' end
  local sets, open = {}, {}
  for d = 4, 5 do
    sets[d], open[d] = moved and pcall('HGET', KEYS[k + d + 3], id), pcall('HEXISTS', KEYS[k + d], '#')
    if type(sets[d]) == 'table' then return 'E' .. sets[d].err end
    if type(open[d]) == 'table' then return 'E' .. open[d].err end
  end

  local ok = pcall('XADD', KEYS[k + 9], '*', 'e', head .. (now or '-') .. '|' .. name)
  if type(ok) == 'table' and ok.err then return 'E' .. ok.err end
  call('HSET', emps, id, head4 .. name)
  call('SET', dir, new)
  if moved then call('HDEL', old, id) end
  local rday = string.match(head4, '^([^|]*)|')
  for d = 4, 5 do
    local set = sets[d]
    if set == '' then call('HDEL', KEYS[k + d + 3], id) end
    -- In the old department's map or, when he was moved before, in another's. The key of a map ends with its date.
    local punched = (set and set ~= '') or rday == string.sub(KEYS[k + d], -10)
    if not punched and (moved or not now) and open[d] == 1 then call('HSETNX', KEYS[k + d], id, '') end
  end
  return 'O'
end

for i = 0, #KEYS / 9 - 1 do out[i + 1] = one(i * 9, i * 7) end
return table.concat(out, '\n')

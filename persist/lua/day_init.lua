-- SPDX-License-Identifier: MIT
-- One step of readying a day map from the members of its department; run until the reply is 0.
-- KEYS: day map, emps, days
-- ARGV: cursor, how many members a step, date, department, field in `days`
-- Reply: the next cursor, "0" at the end
-- The marker '#' is 'i' while this runs and '1' when the roster is whole. An employee hired in between joins by the
-- script that hires him; one whose punches of that date are in another department's map is not put on this roster.
-- A department without employees has no map: the script that hires the first one makes it.
local day, emps, days = KEYS[1], KEYS[2], KEYS[3]
local marker = redis.call('HGET', day, '#')
if marker == '1' then return '0' end
local state = redis.call('HGET', days, ARGV[5])
if state == 'closing' or state == 'closed' then return '0' end
-- Judged before anything is written. A roster that was begun and can't be finished stays unfinished ('d'): the close
-- takes the map as it is, and nobody becomes absent by it.
local kind = redis.call('TYPE', emps).ok
if kind ~= 'hash' and kind ~= 'none' then
  if marker == 'i' then redis.call('HSET', day, '#', 'd') end
  return redis.error_reply('WRONGTYPE the employees of the department are no hash')
end
if kind == 'none' and redis.call('EXISTS', day) == 0 then return '0' end
if marker ~= 'i' then redis.call('HSET', day, '#', 'i') end
if not state then redis.call('HSET', days, ARGV[5], 'open') end

local page = redis.call('HSCAN', emps, ARGV[1], 'COUNT', ARGV[2])
local members, ids, new = page[2], {}, {}
for i = 1, #members, 2 do
  local rday, rdept = string.match(members[i + 1], '^([^|]*)|([^|]*)|')
  if not (rday == ARGV[3] and rdept ~= ARGV[4]) then ids[#ids + 1] = members[i] end
end
for from = 1, #ids, 1000 do
  local to = math.min(from + 999, #ids)
  local there = redis.call('HMGET', day, unpack(ids, from, to))
  new = {}
  for i = from, to do
    if not there[i - from + 1] then
      new[#new + 1] = ids[i]
      new[#new + 1] = ''
    end
  end
  if #new > 0 then redis.call('HSET', day, unpack(new)) end
end
if page[1] == '0' then redis.call('HSET', day, '#', '1') end
return page[1]

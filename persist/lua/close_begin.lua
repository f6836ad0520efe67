-- SPDX-License-Identifier: MIT
-- Sets a day map aside, so that nothing changes it while it is read. Safe to repeat.
-- KEYS: day map, closing map, days, emps
-- ARGV: field in `days`
-- Reply: {marker or '', how many employees}; {'-', 0} when there is no map; {'c', 0} when the day is closed;
--   {'n', 0} when there is nothing to close: no map was ever made of that day, and the department has no employees;
--   {'i', n} when the roster is not whole yet: nothing was done, ready it first; {'w', 0} when the map is of another
--   type: it is kept under its name and ':damaged', and the day is closed without it
local state = redis.call('HGET', KEYS[3], ARGV[1])
local aside = redis.call('TYPE', KEYS[2]).ok
if aside ~= 'hash' and aside ~= 'none' then redis.call('RENAME', KEYS[2], KEYS[2] .. ':damaged') end
if redis.call('EXISTS', KEYS[2]) == 0 then
  if state == 'closed' then return {'c', 0} end
  local kind = redis.call('TYPE', KEYS[1]).ok
  if kind == 'none' and not state and redis.call('EXISTS', KEYS[4]) == 0 then return {'n', 0} end
  if kind ~= 'hash' then
    redis.call('HSET', KEYS[3], ARGV[1], 'closing')
    if kind == 'none' then return {'-', 0} end
    redis.call('RENAME', KEYS[1], KEYS[1] .. ':damaged')
    return {'w', 0}
  end
  local marker = redis.call('HGET', KEYS[1], '#')
  if marker == 'i' then return {'i', redis.call('HLEN', KEYS[1]) - 1} end
  redis.call('RENAME', KEYS[1], KEYS[2])
end
redis.call('HSET', KEYS[3], ARGV[1], 'closing')
local marker = redis.call('HGET', KEYS[2], '#')
return {marker or '', redis.call('HLEN', KEYS[2]) - (marker and 1 or 0)}

#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- A queue as a whole: whether it gives tasks away, and what holds for it.
-- KEYS: queue_info of the queue
-- ARGV[1]: see task.lua; ARGV[2]: PAUSE, RESUME, GET or SET; for SET then name, value or '' for the default, …
-- Reply: O, then paused and every setting: <name>|<value>|<1 when it is the queue's own, else 0>, joined by ;
--   B<text> there are too many queues · E<error>
-- include task.lua
local q = queue_at(KEYS[1])
local base, name = q.base, q.name
if q.err then return 'E' .. q.err end
if (ARGV[2] == 'PAUSE' or ARGV[2] == 'SET') and not may_be(q) then return 'B' .. TOO_MANY_QUEUES end

local function enlist()
  call('SADD', base .. 'queues', name)
  due(q, now)
end

if ARGV[2] == 'PAUSE' then
  call('HSET', q.info, 'paused', '1')
  enlist()
elseif ARGV[2] == 'RESUME' then
  call('HDEL', q.info, 'paused')
  q.paused = false
elseif ARGV[2] == 'SET' then
  for i = 3, #ARGV, 2 do
    if ARGV[i + 1] == '' then call('HDEL', q.info, ARGV[i]) else call('HSET', q.info, ARGV[i], ARGV[i + 1]) end
  end
  enlist()
end
settle()
wake(q)

local own = call('HMGET', q.info, 'paused', unpack(SETTINGS))
local out = { 'paused|' .. (own[1] or '0') .. '|1' }
for i, setting in ipairs(SETTINGS) do
  out[#out + 1] = setting .. '|' .. (own[i + 1] or int(defaults[i])) .. '|' .. (own[i + 1] and '1' or '0')
end
return 'O' .. table.concat(out, ';')

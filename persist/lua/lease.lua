-- SPDX-License-Identifier: MIT
-- Keeps our partitions and shares them with the other daemons: each takes its part, gives up what is over it, and
-- takes what nobody holds.
-- KEYS: daemons, then the owner keys of all partitions
-- ARGV: our daemon's name, the lease in ms, 1 to give everything up (at shutdown), what names of earlier runs of this
--   daemon begin with or '': given once, at start, so that a daemon that crashed has its partitions back at once.
--   The name of each run is its own, so an earlier run that is still alive loses them like any other daemon
-- Reply: {how many daemons, numbers of the partitions that are ours (from 0)}
local me, lease, leaving = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function earlier(name)
  return ARGV[4] ~= '' and name ~= me and string.sub(name, 1, #ARGV[4]) == ARGV[4]
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - lease)
-- The clock was put back: who is alive says so again within a third of a lease.
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + lease, '+inf')
if ARGV[4] ~= '' then
  for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    if earlier(name) then redis.call('ZREM', KEYS[1], name) end
  end
end
if leaving then redis.call('ZREM', KEYS[1], me) else redis.call('ZADD', KEYS[1], now, me) end
local daemons = redis.call('ZCARD', KEYS[1])
local share = leaving and 0 or math.ceil((#KEYS - 1) / daemons)

local mine, free = {}, {}
for i = 2, #KEYS do
  local owner = redis.call('GET', KEYS[i])
  if owner == me then
    if #mine < share then
      redis.call('PEXPIRE', KEYS[i], lease)
      mine[#mine + 1] = i - 2
    else
      redis.call('DEL', KEYS[i])
    end
  elseif not owner or earlier(owner) then
    free[#free + 1] = i
  end
end
for _, i in ipairs(free) do
  if #mine >= share then break end
  redis.call('SET', KEYS[i], me, 'PX', lease)
  mine[#mine + 1] = i - 2
end
return {daemons, mine}

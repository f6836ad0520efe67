-- SPDX-License-Identifier: MIT
-- Ends the close of one department's day: its notices go into the journal and, with the last of them, the map goes.
-- KEYS: closing map, days, journal, owner of the partition
-- ARGV: field in `days`, our daemon's name, 1 for the last call, then journal records
-- Reply: 1 done; 0 the partition is no longer ours: nothing was done
if redis.call('GET', KEYS[4]) ~= ARGV[2] then return 0 end
if redis.call('HGET', KEYS[2], ARGV[1]) == 'closed' then return 1 end
local log = {}
for i = 4, #ARGV do
  log[#log + 1] = 'e'
  log[#log + 1] = ARGV[i]
end
if #log > 0 then redis.call('XADD', KEYS[3], '*', unpack(log)) end
if ARGV[3] == '1' then
  redis.call('HSET', KEYS[2], ARGV[1], 'closed')
  redis.call('UNLINK', KEYS[1])
end
return 1

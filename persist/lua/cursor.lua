-- SPDX-License-Identifier: MIT
-- Moves a cursor of a partition's journal, if the partition is still ours; never backwards.
-- KEYS: cursor, owner, journal
-- ARGV: our daemon's name, cursor field (relay or ledger), the new position as <ms>-<n>, field of the planned end of
--   the next window or '', that end, then journal records to append in the same step
-- Reply: 1 done; 0 the partition is no longer ours: nothing was done
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
local log = {}
for i = 6, #ARGV do
  log[#log + 1] = 'e'
  log[#log + 1] = ARGV[i]
end
if #log > 0 then redis.call('XADD', KEYS[3], '*', unpack(log)) end
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], ARGV[2], ARGV[3]) end
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], ARGV[4], ARGV[5]) end
return 1

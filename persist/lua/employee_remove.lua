-- SPDX-License-Identifier: MIT
-- Removes an employee. His history stays; so do punches that are not closed yet, and their row will be written.
-- KEYS: dir, emps, day maps of today and tomorrow, journal of the department's partition
-- ARGV: employee, the department that the caller believes he is in, journal record
-- Reply: O done; R<dept> he is in that department now, ask again; U no such employee
local now = redis.call('GET', KEYS[1])
if not now then return 'U' end
if now ~= ARGV[2] then return 'R' .. now end
redis.call('XADD', KEYS[5], '*', 'e', ARGV[3])
redis.call('DEL', KEYS[1])
redis.call('HDEL', KEYS[2], ARGV[1])
for i = 3, 4 do
  if redis.call('HGET', KEYS[i], ARGV[1]) == '' then redis.call('HDEL', KEYS[i], ARGV[1]) end
end
return 'O'

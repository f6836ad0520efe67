-- SPDX-License-Identifier: MIT
-- Cancels a job before its instant.
-- KEYS: {org}:roots (the anchor)
-- ARGV: prefix of the tree's keys, the job's number
-- Reply: O it is being undone, or has been; L too late; P no such job
local base, n = ARGV[1], ARGV[2]
-- include tree.lua
local key = at('job', n)
local phase = call('HGET', key, 'phase')
if not phase then return 'P' end
if phase == 'undo' or phase == 'cancelled' then return 'O' end
if phase ~= 'prepare' then return 'L' end
call('UNLINK', key .. ':todo')
call('HSET', key, 'phase', 'undo', 'group', 1, 'cursor', '0')
return 'O'

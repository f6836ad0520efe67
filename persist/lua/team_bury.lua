-- SPDX-License-Identifier: MIT
-- Deletes nodes of a job that have no employees any more.
-- KEYS: {org}:roots (the anchor), then four a node: its emps, its day maps of today and tomorrow, days of its partition
-- ARGV: prefix of the tree's keys, the job's number, unix ms, the nodes
-- Reply: the nodes that have employees; whatever else is left is asked for again by team_job.lua
local base, n, now = ARGV[1], ARGV[2], ARGV[3]
-- include tree.lua
-- include tree_bury.lua
local job = call('HMGET', at('job', n), 'id', 'path')
local top, path = job[1], job[2]
local busy, left = {}, 500
if not top or not is_doomed(top) then return busy end

-- As much of the path as is still there: those between may have been deleted before.
local function old_path(id)
  local below = {}
  while id and id ~= top and is_doomed(id) and #below < CLIMB_MAX do
    table.insert(below, 1, id)
    id = call('HGET', at('dept', id), 'parent_id')
  end
  return path .. (#below > 0 and ':' or '') .. table.concat(below, ':')
end

for i = 4, #ARGV do
  local id, k = ARGV[i], (i - 4) * 4 + 1
  if not is_doomed(id) then
    call('SREM', at('children', top), id)
  elseif call('HLEN', KEYS[k + 1]) > 0 then
    busy[#busy + 1] = id
  elseif left > 0 then
    local went, all = bury(id, old_path(id), { unpack(KEYS, k + 1, k + 4) }, now, left)
    left = left - went
    if all and id ~= top then call('SREM', at('children', top), id) end
    if all then call('HINCRBY', at('job', n), 'done', 1) end
  end
end
return busy

-- SPDX-License-Identifier: MIT
-- Removes a node: alone, with all below it ('cascade'), or so that its children take its place ('lift'). A node that
-- nothing hangs on goes at once, all else by a job (team_job.lua); a cascade is out of sight from here on.
-- KEYS: {org}:roots (the anchor), the node's emps, its day maps of today and tomorrow, days of its partition
-- ARGV: prefix of the tree's keys, id, '' or the mode, the version it must have or '', '1' = only say whether it may
--   be, unix ms
-- Reply: O done; J<job> begun, or under way already; K<nodes>|<1 when it would be a job> it may be; P no such node;
--   S not with department 0; E it has children; M it has employees; V<version> it has another version; N<id> a node at
--   their new place has the name of one of the children; B<job> the job is in the way; C the tree above is damaged
local base, id, mode, version, dry, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5] == '1', ARGV[6]
-- include tree.lua
-- include tree_bury.lua
local chain, why = climb(id)
if not chain then return why end
if id == '0' then return 'S' end
local node, path, parent = node_of(id), path_of(chain, id), chain[1] or ''
local old_version = outdated(node, version)
if old_version then return old_version end
local jobs = jobs_of()
for _, job in ipairs(jobs) do
  local same = job.op == 'lift' and job.id == id and mode == 'lift' and job.version == version
  if same and job.phase == 'prepare' and not dry then return 'J' .. job.n end
  if in_the_way(job, node, chain) then return 'B' .. job.n end
end
local kids, people = call('SCARD', at('direct_children', id)), call('HLEN', KEYS[2])
if mode == '' and kids > 0 then return 'E' end
if mode == '' and people > 0 then return 'M' end
local lift = mode == 'lift'
if lift and kids <= 500 then
  -- More than these are looked at by the job.
  local names = call('HGETALL', at('names', id))
  for i = 1, #names, 2 do
    local taken, there = holder_of(parent, names[i])
    if taken and taken ~= id then return there and 'N' .. taken or 'B' end
  end
end
local small = kids == 0 and people == 0 and call('SCARD', at('members', id)) <= 200
local nodes = lift and 1 or node.sub + 1
if dry then return string.format('K%.0f|%d', nodes, small and 0 or 1) end
if small then
  log_node('remove', node, node.version + 1, 'removed', path)
  detach(node, chain, 1)
  for _, a in ipairs(chain) do call('SREM', at('children', a), id) end
  bury(id, path, { unpack(KEYS, 2, 5) }, now, 200)
  return 'O'
end
if #jobs >= 64 then return 'B' end

local n = string.format('%.0f', call('INCR', base .. 'next_job'))
local job = at('job', n)
if not lift then
  log_node('remove', node, node.version + 1, 'removed', path)
  call('HSET', at('dept', id), 'state', 'removed')
  detach(node, chain, node.sub + 1)
end
call('HSET', job, 'op', lift and 'lift' or 'remove', 'id', id, 'parent', lift and parent or '0', 'phase',
  lift and 'prepare' or 'finish', 'stage', lift and 'names' or 'mark', 'old', table.concat(chain, ':'), 'path', path,
  'group', 1, 'cursor', '0', 'done', 0, 'total', lift and kids + 1 or (node.sub + 1) * (#chain + 2), 'started', now,
  'if', version)
call('SADD', base .. 'jobs', n)
return 'J' .. n

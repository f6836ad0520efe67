-- SPDX-License-Identifier: MIT
-- Changes a node where it stands.
-- KEYS: {org}:roots (the anchor)
-- ARGV: prefix of the tree's keys, id, what (rename, manager, retire, restore), the new name or manager, folded name,
--   the version it must have or '', '1' = only say whether it may be
-- Reply: O done, or so already; K it may be; P no such node; S not with department 0; V<version> it has another
--   version; N<id> that sibling has the name; B<job> the job is in the way; C the tree above is damaged
local base, id, what, value, fold, version, dry = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7] == '1'
-- include tree.lua
local above, why = climb(id)
if not above then return why end
local node, key = node_of(id), at('dept', id)

local so_already = { rename = node.name == value, manager = node.manager == value, retire = node.state == 'retired',
  restore = node.state ~= 'retired' }
if so_already[what] then return 'O' end
if what == 'retire' and id == '0' then return 'S' end
local old_version = outdated(node, version)
if old_version then return old_version end
if what == 'rename' then
  local taken, there = holder_of(above[1] or '', fold)
  if taken and taken ~= id then return there and 'N' .. taken or 'B' end
end

-- Whether a job under way relies on what would change.
local function relies(job)
  if what == 'rename' then
    -- It has set the names aside under which they are to arrive.
    return (job.op == 'lift' and job.id == node.parent) or (job.op ~= 'remove' and job.id == id)
  elseif what == 'retire' and job.op == 'move' then
    return job.phase == 'prepare' and job.parent == id
  elseif (what == 'retire' or what == 'restore') and job.op == 'lift' and job.phase == 'finish' then
    -- Where its people go was decided at its instant.
    local up, home = has(job.old, id), has(job.old, home_from(job.parent))
    return up and (up == home or (what == 'restore' and (not home or up < home)))
  end
end
for _, job in ipairs(what ~= 'manager' and jobs_of() or {}) do
  if relies(job) then return 'B' .. job.n end
end
if dry then return 'K' end

local was = node.fold
if what == 'rename' then node.name = value end
if what == 'manager' then node.manager = value end
if what == 'retire' then node.state = 'retired' end
if what == 'restore' then node.state = 'active' end
node.parent = above[1] or ''
log_node(what, node, node.version + 1, node.state, path_of(above, id))
call('HSET', key, 'version', node.version + 1)
if what == 'rename' then
  call('HSET', key, 'name', value)
  if fold == string.lower(value) then call('HDEL', key, 'fold') else call('HSET', key, 'fold', fold) end
  free_name(node.parent, was, id)
  call('HSET', names_of(node.parent), fold, id)
elseif what == 'manager' then
  if value == '' then call('HDEL', key, 'manager') else call('HSET', key, 'manager', value) end
elseif what == 'retire' then
  call('HSET', key, 'state', 'retired')
else
  call('HDEL', key, 'state')
end
return 'O'

-- SPDX-License-Identifier: MIT
-- What the two scripts of the tree's check share; they include it behind `local base = …`.
-- KEYS: {org}:roots (the anchor), then one an item: dir of its employee, else the anchor again
-- ARGV, reply: see check.lua. ARGV[1]: prefix of the tree's keys; mode 0 look, 1 repair what is derived, 2 and 3 the
--   truth too; ARGV[3]: unix ms
-- include tree.lua
-- include check.lua
local now = tonumber(ARGV[3])
local ADOPT, LOSE = 2, 3 -- the least modes in which the truth is repaired

-- Findings whose repair may bring back what somebody who has read the tree before does not know of.
local BACK = { DSMISS = 1, DCMISS = 1, DCEXTRA = 1, ORPHAN = 1, CYCLE = 1, STATE = 1, TYPE = 1 }

local brought_back = false

local function finding(code, id, detail, ...)
  local done = found(code, id, '', detail, ...)
  brought_back = brought_back or (done and BACK[code])
  return done
end

-- Big changes under way: the sets of `pending` nodes are being filled or emptied, and while nodes are being deleted
-- one that is not there is no finding.
local sound, jobs = pcall(jobs_of)
if not sound then jobs = {} end
local pending, deleting = {}, false
for _, job in ipairs(jobs) do
  for _, id in ipairs(job.old) do pending[id] = true end
  for _, id in ipairs(job.new) do pending[id] = true end
  if job.op ~= 'move' then deleting = true end
end

-- A node's parent and state, false when there is no such node.
local links = {}
local function link(id)
  local l = links[id]
  if l == nil then
    local f = ask('HMGET', at('dept', id), 'parent_id', 'state')
    l = f and f[1] and { parent = f[1], state = f[2] or 'active' } or false
    links[id] = l
  end
  return l
end

local function exists(id) return ask('EXISTS', at('dept', id)) == 1 end

-- Whether a job has set a name aside for a node that is to arrive there.
local function is_reserved(parent, id)
  for _, job in ipairs(jobs) do
    local arrives = job.id == id or (job.op == 'lift' and link(id) and link(id).parent == job.id)
    if job.parent == parent and arrives then return true end
  end
  return false
end

-- The ancestors as climb() has them, as far as there are any, and how they end: 'root'; 'removed' at a node that is
-- being removed; 'lost' at a node that is not there, which is the third; 'loop' back at the node itself; 'tangle' in a
-- loop that it is not part of.
local function chain_of(id)
  local list, up, mark, mark_at = {}, id, nil, 8
  for step = 1, CLIMB_MAX do
    local l = link(up)
    if not l then return list, 'lost', up end
    if l.state == 'removed' then return list, 'removed' end
    if up ~= id and l.state ~= 'lifted' then list[#list + 1] = up end
    up = l.parent
    if up == '' then return list, 'root' end
    if up == id then return list, 'loop' end
    if up == mark then break end
    if step == mark_at then mark, mark_at = up, 2 * step end
  end
  return list, 'tangle'
end

-- Whether a node hangs nowhere by its own fault: what it was below may still list it, and that is the better witness.
local function is_astray(id)
  local l, _, ending, lost = link(id), chain_of(id)
  return ending == 'loop' or (lost == id and exists(id)) or (l and lost == l.parent and not exists(lost))
end

local function wrong_type(kind, id, is)
  local key = id ~= '' and at(kind, id) or base .. kind
  finding('TYPE', id ~= '' and id or kind, kind .. ' is a ' .. is, ADOPT, 'RENAMENX', key, key .. ':damaged')
end

-- Does the items of this call; at_last() does what is done for all together.
local function look_through(kinds, at_last)
  look_at(kinds, wrong_type)
  if at_last then at_last() end
  if brought_back then pcall(log, 'Z|repaired') end
  return lines
end

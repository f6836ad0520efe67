-- SPDX-License-Identifier: MIT
-- Moves a node with all that is below it: at once when that is few writes, else by a job (team_job.lua).
-- KEYS: {org}:roots (the anchor)
-- ARGV: prefix of the tree's keys, id, the new parent or '', the version it must have or '', '1' = only say whether it
--   may be, most levels, most writes at once, unix ms, how many levels are below the node or '' (not known), the
--   journal entry at which that was so
-- Reply: O done, or so already; J<job> begun, or under way already; K<nodes>|<1 when it would be a job> it may be;
--   H<entry> say how many levels are below it as of that journal entry; P no such node; U no such parent; R the
--   parent is retired; S department 0 stays where it is; Y a cycle; D too deep; V<version> it has another version;
--   N<id> that node there has its name; B<job> the job is in the way; C the tree above one of them is damaged
local base, id, parent, version, dry = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5] == '1'
local deepest, most, now, height, seen = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], ARGV[9], ARGV[10]
-- include tree.lua
-- include tree_flip.lua
local chain, why = climb(id)
if not chain then return why end
local target, whyp = ancestors_below(parent)
if not target then return whyp == 'P' and 'U' or 'C' end
local node = node_of(id)
if (chain[1] or '') == parent then return dry and 'K0|0' or 'O' end
if id == '0' then return 'S' end
local old_version = outdated(node, version)
if old_version then return old_version end
if has(target, id) then return 'Y' end
if parent ~= '' and node_of(parent).state == 'retired' then return 'R' end

local jobs = jobs_of()
for _, job in ipairs(jobs) do
  local same = job.op == 'move' and job.id == id and job.parent == parent and job.version == version
  if same and job.phase == 'prepare' and not dry then return 'J' .. job.n end
  if in_the_way(job, node, chain) or has(target, job.id) then return 'B' .. job.n end
end
if #target + 1 > deepest then return 'D' end
if #target > #chain and #target + 1 + node.sub > deepest then
  local last = call('GET', base .. 'last') or ''
  if height == '' or seen ~= last then return 'H' .. last end
  if #target + 1 + tonumber(height) > deepest then return 'D' end
end
local taken, there = holder_of(parent, node.fold)
if taken and taken ~= id then return there and 'N' .. taken or 'B' end

local i, j = #chain, #target
while i > 0 and j > 0 and chain[i] == target[j] do i, j = i - 1, j - 1 end
local old, new = { unpack(chain, 1, i) }, { unpack(target, 1, j) }
local big = (node.sub + 1) * (i + j) > most
if dry then return string.format('K%.0f|%d', node.sub + 1, big and 1 or 0) end
if big then
  if #jobs >= 64 then return 'B' end
  local n = string.format('%.0f', call('INCR', base .. 'next_job'))
  call('HSET', at('job', n), 'op', 'move', 'id', id, 'parent', parent, 'phase', 'prepare', 'old',
    table.concat(old, ':'), 'new', table.concat(new, ':'), 'group', 1, 'cursor', '0', 'done', 0, 'total',
    (node.sub + 1) * (i + j), 'started', now, 'if', version)
  call('HSET', names_of(parent), node.fold, id)
  call('SADD', base .. 'jobs', n)
  return 'J' .. n
end

local ids = call('SMEMBERS', at('children', id))
ids[#ids + 1] = id
flip(node, parent, chain, target, old, new)
for from = 1, #ids, 1000 do
  local to = math.min(from + 999, #ids)
  for _, a in ipairs(old) do call('SREM', at('children', a), unpack(ids, from, to)) end
  for _, a in ipairs(new) do call('SADD', at('children', a), unpack(ids, from, to)) end
end
return 'O'

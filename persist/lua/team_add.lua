-- SPDX-License-Identifier: MIT
-- Adds a node to the tree, and opens its day maps, so that whoever is hired into it joins today at once.
-- KEYS: {org}:dept:<id> (the anchor: keys of ancestors carry its tag and are derived), {org}:journal,
--   days of the node's partition, its day maps of today and tomorrow
-- ARGV: prefix of the tree's keys, id, parent or '', name, manager, most levels, fields of the two days in `days`
-- Reply: O added, or there already just so; P no such parent; D too deep; X exists elsewhere; C the tree is damaged
local base, id, parent, name, manager, deepest = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local old = redis.call('HMGET', KEYS[1], 'parent_id', 'name', 'manager')
if old[1] then
  if old[1] == parent and old[2] == name and old[3] == manager then return 'O' end
  return 'X'
end

local ancestors, path = {}, id
local up = parent
while up ~= '' do
  local next_up = redis.call('HGET', base .. 'dept:' .. up, 'parent_id')
  if not next_up then return #ancestors == 0 and 'P' or 'C' end
  ancestors[#ancestors + 1] = up
  path = up .. ':' .. path
  if #ancestors >= deepest then return 'D' end
  up = next_up
end

redis.call('XADD', KEYS[2], '*', 'e', 'T|add|' .. id .. '|' .. (parent == '' and '-' or parent) .. '|' ..
  (manager == '' and '-' or manager) .. '|' .. path .. '|' .. name)
redis.call('HSET', KEYS[1], 'id', id, 'name', name, 'parent_id', parent, 'path', path, 'manager', manager,
  'state', 'active', 'sub', 0, 'version', 1)
redis.call('SADD', parent == '' and base .. 'roots' or base .. 'direct_children:' .. parent, id)
for _, a in ipairs(ancestors) do
  redis.call('SADD', base .. 'children:' .. a, id)
  redis.call('HINCRBY', base .. 'dept:' .. a, 'sub', 1)
end
for i = 0, 1 do
  redis.call('HSETNX', KEYS[4 + i], '#', '1')
  redis.call('HSETNX', KEYS[3], ARGV[7 + i], 'open')
end
return 'O'

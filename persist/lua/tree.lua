-- SPDX-License-Identifier: MIT
-- What the scripts of the tree share; they include it behind `local base = …`, the prefix of the tree's keys
-- (`muster:{org}:`). The truth is parent_id and direct_children. Ancestors are climbed, never read from what is
-- derived.
local call = redis.call
local CLIMB_MAX = 1000 -- a chain that is longer goes round in a circle

local function at(kind, id) return base .. kind .. ':' .. id end
local function names_of(parent) return at('names', parent == '' and '-' or parent) end
local function children_of(parent) return parent == '' and base .. 'roots' or at('direct_children', parent) end

-- A node as a table, nil where there is none. `parent` is what is stored: perhaps a node that is being lifted.
local function node_of(id)
  local f = call('HMGET', at('dept', id), 'parent_id', 'name', 'manager', 'state', 'sub', 'version', 'fold')
  if not f[1] then return nil end
  return { id = id, parent = f[1], name = f[2] or '', manager = f[3] or '', state = f[4] or 'active',
    sub = tonumber(f[5]) or 0, version = tonumber(f[6] or 1), fold = f[7] or string.lower(f[2] or '') }
end

-- The ids of a node's ancestors, nearest first. nil and 'P' when there is no such node, or it is in a subtree that is
-- being removed; nil and 'C' when the tree above it is damaged. A node that is being lifted is passed through.
local function climb(id)
  local list, up = {}, id
  for step = 0, CLIMB_MAX do
    local f = call('HMGET', at('dept', up), 'parent_id', 'state')
    if not f[1] then return nil, step == 0 and 'P' or 'C' end
    if f[2] == 'removed' or (step == 0 and f[2] == 'lifted') then return nil, 'P' end
    if step > 0 and f[2] ~= 'lifted' then list[#list + 1] = up end
    up = f[1]
    if up == '' then return list end
  end
  return nil, 'C'
end

-- The ancestors of a child of `parent`, nearest first; none below '', where the roots are. nil and a letter as climb().
local function ancestors_below(parent)
  if parent == '' then return {} end
  local above, why = climb(parent)
  if not above then return nil, why end
  return { parent, unpack(above) }
end

-- The first from `up` on that takes people: one that is not retired; department 0 where there is none.
local function home_from(up)
  while up ~= '' and node_of(up) do
    local above = climb(up)
    if not above then break end
    if node_of(up).state ~= 'retired' then return up end
    up = above[1] or ''
  end
  return '0'
end

-- Where the people of a department go that is being lifted or removed; nil when it is not.
local function place_after(dept)
  local above, why = climb(dept)
  local node = node_of(dept)
  if above or why ~= 'P' or not node then return nil end
  return home_from(node.state == 'lifted' and node.parent or '')
end

-- A name that the node has below `parent` is free again.
local function free_name(parent, fold, id)
  if call('HGET', names_of(parent), fold) == id then call('HDEL', names_of(parent), fold) end
end

-- Who has a name below `parent`: nil when it is free (or left over from a node that is gone); an id, and whether that
-- is a child there now. It is not while a job has only set the name aside.
local function holder_of(parent, fold)
  local id = call('HGET', names_of(parent), fold)
  if not id or call('EXISTS', at('dept', id)) == 0 then return nil end
  local above = climb(id)
  return id, above ~= nil and (above[1] or '') == parent
end

-- So many descendants more, or fewer.
local function count_below(id, more)
  if call('HINCRBY', at('dept', id), 'sub', more) == 0 then call('HDEL', at('dept', id), 'sub') end
end

-- V and the node's version when that is not the one it must have; nil when it is, or when any will do ('').
local function outdated(node, version)
  local now = string.format('%.0f', node.version)
  return version ~= '' and version ~= now and 'V' .. now or nil
end

-- From the root to the node, joined by ':'.
local function path_of(ancestors, id)
  local path = {}
  for i = #ancestors, 1, -1 do path[#path + 1] = ancestors[i] end
  path[#path + 1] = id
  return table.concat(path, ':')
end

local function split(text)
  local list = {}
  for id in string.gmatch(text or '', '[^:]+') do list[#list + 1] = id end
  return list
end

local function has(list, id)
  for i = 1, #list do
    if list[i] == id then return i end
  end
  return nil
end

-- The jobs under way: few.
local function jobs_of()
  local list = {}
  for _, n in ipairs(call('SMEMBERS', base .. 'jobs')) do
    local f = call('HMGET', base .. 'job:' .. n, 'op', 'id', 'parent', 'phase', 'old', 'new', 'if')
    if f[1] then
      list[#list + 1] = { n = n, op = f[1], id = f[2], parent = f[3], phase = f[4], old = split(f[5]),
        new = split(f[6]), version = f[7] or '' }
    end
  end
  return list
end

-- Whether a node can't leave its place because of the job: it is what moves, or below or above that, or among the
-- ancestors that lose or gain it; the stored ones, since the place it comes from may have gone meanwhile.
local function in_the_way(job, node, chain)
  return job.id == node.id or job.id == node.parent or has(chain, job.id) or has(job.old, node.id) or
    has(job.new, node.id) or has(climb(job.id) or {}, node.id)
end

-- Writes to the organisation's journal. It comes before all other writes: when Redis refuses it, nothing is done.
local function log(record)
  call('SET', base .. 'last', call('XADD', base .. 'journal', '*', 'e', record))
end

-- T|change|id|parent or -|manager or -|version|state|path|old path or -|name
local function log_node(change, node, version, state, path, old)
  log(table.concat({ 'T', change, node.id, node.parent == '' and '-' or node.parent,
    node.manager == '' and '-' or node.manager, version, state, path, old or '-', node.name }, '|'))
end

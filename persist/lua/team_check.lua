-- SPDX-License-Identifier: MIT
-- Looks at nodes: are they well-formed, do they hang on a root, and does all that is derived from them say so? In any
-- order, while changes go on; what is below a node that is being removed is left alone. Siblings are looked at
-- together, from what their parent lists; the others by themselves.
-- KEYS, ARGV, reply: see tree_check.lua and check.lua. Items: roots, direct_children:<id>, dept:<id>. Findings:
--   FIELD     a field is malformed, missing or left over
--   STATE     a state that there is not, or of a change that is not under way
--   ORPHAN    the parent does not exist
--   CYCLE     the node is its own ancestor
--   DCMISS    the parent's direct_children lack it
--   DCEXTRA   direct_children list a node that hangs elsewhere, or none
--   DSMISS    children of the ancestor that is named lack it
--   NAMEMISS  the names below its parent lack it
--   NAMEDUP   a sibling has the same name
-- Nodes whose counts do not add up are to be verified, and names of which there are too many: team_check_keys.lua.
local base = ARGV[1]
-- include tree_check.lua
-- include tree_flip.lua
local LOST = 'lost-found'
local WIDE_AND_DEEP = 5000 -- siblings times levels above them, beyond which each is looked at by itself

-- ---- the sets of descendants ----

-- What must be in the set of which node: asked for at the end of the call, since many share their ancestors.
local held, holders = {}, {}
local function must_hold(a, x)
  if not held[a] then
    held[a], holders[#holders + 1] = {}, a
    spent = spent + 1
  end
  table.insert(held[a], x)
  spent = spent + 1 / 8
end

local add_below -- a repair

local function ask_sets()
  for _, a in ipairs(holders) do
    for from = 1, #held[a], 1000 do
      local ids = { unpack(held[a], from, math.min(from + 999, #held[a])) }
      local there = redis.pcall('SMISMEMBER', at('children', a), unpack(ids))
      for i = 1, there.err and 0 or #ids do
        if there[i] == 0 then finding('DSMISS', ids[i], a, REPAIR, add_below, ids[i], a) end
      end
    end
  end
  held, holders = {}, {}
end

-- ---- repairs of the truth: changes like others, with a version and a record ----

-- A node's own field; without one only its version.
local function mend(id, change, field, value)
  call('HSETNX', at('dept', id), 'parent_id', '')
  local above, node = (chain_of(id)), node_of(id)
  -- Later than any that somebody may have seen, when the present one is lost.
  local version = string.format('%.0f', (node.version or math.floor(now / 1000)) + 1)
  if field == 'name' then node.name = value end
  if field == 'state' then node.state = 'active' end
  node.parent = above[1] or ''
  log_node(change, node, version, node.state, path_of(above, id))
  call('HSET', at('dept', id), 'version', version)
  if value then call('HSET', at('dept', id), field, value) elseif field then call('HDEL', at('dept', id), field) end
  links[id] = nil
  return true
end

-- Hangs a node up elsewhere. The sets and counts above both places follow: they are findings of the next round.
local function rehang(id, parent)
  ask_sets() -- as it has hung until now
  call('HSETNX', at('dept', id), 'parent_id', '')
  local node, target = node_of(id), {}
  if not node.version then return false end
  if parent ~= '' then target = { parent, unpack((chain_of(parent))) } end
  flip(node, parent, (chain_of(id)), target, {}, {})
  links = {}
  return true
end

-- Lost and found: a root of its own, made when it is needed, and hung up as one when it is lost itself.
local function lose(x, parent)
  if not link(LOST) then
    local name = 'Lost and found'
    log_node('add', { id = LOST, parent = '', name = name, manager = '' }, 1, 'active', LOST)
    call('HSET', at('dept', LOST), 'name', name, 'parent_id', '')
    call('HSETNX', names_of(''), string.lower(name), LOST)
    call('SADD', children_of(''), LOST)
    links = {}
  end
  if x == LOST then return rehang(LOST, '') end
  local _, ending = chain_of(LOST)
  if ending == 'removed' then return false end
  if ending ~= 'root' then rehang(LOST, '') end
  call('HSET', at('dept', x), 'lost_parent', parent)
  return rehang(x, LOST)
end

-- ---- one node ----

local function read(x)
  local f = ask('HMGET', at('dept', x), 'parent_id', 'name', 'state', 'version', 'fold', 'sub', 'id', 'path')
  if not f then return nil end
  links[x] = f[1] and { parent = f[1], state = f[3] or 'active' } or false
  return { parent = f[1], name = f[2], state = f[3] or 'active', version = f[4],
    fold = f[5] or string.lower(f[2] or ''), sub = f[6] or '0', id = f[7], path = f[8] }
end

-- What is right or wrong wherever it hangs. A count that does not add up says that something is wrong here or close
-- by; what that is takes a closer look.
local function check_own(x, f)
  local key, on_its_way = at('dept', x), deleting and (f.state == 'lifted' or f.state == 'removed')
  if f.state ~= 'active' and f.state ~= 'retired' and not on_its_way then
    finding('STATE', x, f.state, ADOPT, mend, x, 'restore', 'state')
  end
  for _, old in ipairs({ 'id', 'path' }) do
    if f[old] then finding('FIELD', x, old, REPAIR, 'HDEL', key, old) end
  end
  if f.version and not string.match(f.version, '^%d+$') then
    finding('FIELD', x, 'version', ADOPT, mend, x, 'rename')
  end
  if not f.name or f.name == '' then finding('FIELD', x, 'name', ADOPT, mend, x, 'rename', 'name', x) end
  local below = ask('SCARD', at('children', x))
  if not below then
    wrong_type('children', x, ask('TYPE', at('children', x)).ok)
  elseif below > 0 or f.sub ~= '0' then
    -- With a list of children the sum is looked at from there.
    local listed = ask('EXISTS', at('direct_children', x)) == 1
    if listed then more('direct_children:' .. x) end
    if not pending[x] and f.state ~= 'lifted' and (tonumber(f.sub) ~= below or not listed) then more('verify:' .. x) end
  end
  lines[#lines + 1] = '=dept:' .. x
end

-- `holder` is who its name is registered for. Returns whether the name is registered now, and not for a sibling.
local function check_name(x, f, holder)
  if holder == x then return true end
  if not f.name or f.name == '' then return false end
  local other = holder and ask('HMGET', at('dept', holder), 'parent_id', 'name', 'fold')
  if other and other[1] == f.parent and (other[3] or string.lower(other[2] or '')) == f.fold then
    finding('NAMEDUP', x, holder, NEVER)
    return false
  end
  if holder and is_reserved(f.parent, holder) then return true end
  return finding('NAMEMISS', x, f.fold, REPAIR, 'HSET', names_of(f.parent), f.fold, x) or holder
end

-- One that has come to lost and found with another has not been told of yet.
function add_below(x, a)
  call('SADD', at('children', a), x)
  return mode < LOSE or a ~= LOST or mend(x, 'rename')
end

-- One node of a circle is enough to open it.
local function check_loop(x, parent, ring)
  local first = true
  for _, id in ipairs(ring) do first = first and x <= id end
  finding('CYCLE', x, parent, first and LOSE or NEVER, lose, x, parent)
end

-- A node whose siblings are of no help.
local function check_alone(x, f)
  local ancestors, ending, lost = chain_of(x)
  if ending == 'removed' and (deleting or f.state ~= 'removed') then return end
  check_own(x, f)
  if ending == 'removed' or f.state == 'lifted' then return end
  if ending == 'loop' then return check_loop(x, f.parent, ancestors) end
  if lost == x or lost == f.parent then
    if is_astray(x) and not deleting then finding('ORPHAN', x, f.parent or '', LOSE, lose, x, f.parent or '') end
    return
  end
  if ask('SISMEMBER', children_of(f.parent), x) == 0 then
    finding('DCMISS', x, f.parent == '' and '-' or f.parent, REPAIR, 'SADD', children_of(f.parent), x)
  end
  if f.parent == '' or link(f.parent).state ~= 'lifted' then
    local holder = ask('HGET', names_of(f.parent), f.fold)
    if holder ~= nil then check_name(x, f, holder) end
  end
  if ending == 'tangle' then return end
  for _, a in ipairs(ancestors) do must_hold(a, x) end
end

local function check_dept(x)
  local f = read(x)
  if not f then
    wrong_type('dept', x, ask('TYPE', at('dept', x)).ok)
  elseif f.parent or exists(x) then
    check_alone(x, f)
  end
end

-- ---- what a parent lists ----

-- One that hangs elsewhere. What it says itself counts, unless that can't be: then the list is the better witness.
local function check_stranger(parent, id, f)
  if is_astray(id) then
    local _, ending = chain_of(id)
    local _, sound = chain_of(parent)
    if mode >= ADOPT and (parent == '' or sound == 'root') then
      finding(ending == 'loop' and 'CYCLE' or 'ORPHAN', id, f.parent or '', ADOPT, rehang, id, parent)
    end
  elseif f.parent or exists(id) or not deleting then
    finding('DCEXTRA', parent == '' and '-' or parent, id, REPAIR, 'SREM', children_of(parent), id)
  end
end

-- Children that hang where they are listed: what they have in common is asked for once. Returns how many of the
-- names that are registered are theirs.
local function check_siblings(parent, above, ids, fields)
  if #ids == 0 then return 0 end
  local folds, named = {}, 0
  for i = 1, #ids do folds[i] = fields[i].fold end
  local taken = ask('HMGET', names_of(parent), unpack(folds))
  if not taken then wrong_type('names', parent == '' and '-' or parent, ask('TYPE', names_of(parent)).ok) end
  for i = 1, taken and #ids or 0 do
    if check_name(ids[i], fields[i], taken[i]) then named = named + 1 end
  end
  local apart = #ids * #above > WIDE_AND_DEEP
  for _, id in ipairs(ids) do
    if apart then more('dept:' .. id) end
    for i = 1, apart and 0 or #above do must_hold(above[i], id) end
  end
  return named
end

-- `from`: cursor, the children's sum so far, how many registered names are theirs. Changes may come between two pages,
-- so what does not add up is only a reason for a closer look.
local function check_children(parent, from)
  local cursor, sum, named = string.match(from, '^(%d+):(%d+):(%d+)$')
  sum, named = tonumber(sum or 0), tonumber(named or 0)
  local above, ending = chain_of(parent)
  if ending == 'removed' then return nil end
  table.insert(above, 1, parent)
  if parent == '' then above, ending = {}, 'root' end
  local plain = ending == 'root' and (parent == '' or link(parent).state ~= 'lifted')
  local go_on = walk('SSCAN', children_of(parent), cursor or '0', function(page)
    local ids, fields = {}, {}
    for _, id in ipairs(page) do
      local f = read(id)
      if f and f.parent ~= parent then
        check_stranger(parent, id, f)
      elseif f and plain and f.state ~= 'lifted' and f.state ~= 'removed' then
        check_own(id, f)
        ids[#ids + 1], fields[#fields + 1] = id, f
        sum = sum + 1 + (tonumber(f.sub) or 0)
      elseif f then
        check_alone(id, f)
      end
    end
    named = named + check_siblings(parent, above, ids, fields)
  end)
  if go_on then return string.format('%s:%.0f:%.0f', go_on, sum, named) end
  if not plain then return nil end
  local names = ask('HLEN', names_of(parent))
  if names and names > named then more('spare:' .. (parent == '' and '-' or parent)) end
  if parent ~= '' and not pending[parent] and tonumber(ask('HGET', at('dept', parent), 'sub') or 0) ~= sum then
    more('verify:' .. parent)
  end
  return nil
end

return look_through({
  dept = { nil, check_dept },
  direct_children = { 'set', check_children },
  roots = { 'set', check_children },
}, ask_sets)

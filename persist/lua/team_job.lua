-- SPDX-License-Identifier: MIT
-- One step of a job: a big move, a lift, a removal. Every step may be repeated, and two that run it do no harm.
-- KEYS: {org}:roots (the anchor)
-- ARGV: prefix of the tree's keys, the job's number, about how many writes a step
-- Reply: {'go'} there is more; {'bury', department, id …} these may be deleted (team_bury.lua) when their employees
--   have been moved to the department; {'end', phase, what is wrong or ''}
-- A move: the sets of the ancestors that gain the subtree are filled (prepare), then comes the instant of the move,
-- then the sets of those that lose it are emptied (finish). A lift: the children's names are set aside in their new
-- place (prepare); then the node counts as gone (state lifted: climbing passes through it) and its children are hung
-- up one by one. A removal begins after its instant. `undo` takes back what prepare has done.
local base, n, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
-- include tree.lua
-- include tree_flip.lua
-- include tree_bury.lua
local key, todo = at('job', n), at('job', n .. ':todo')
local branch = math.min(most, 500)
local f = call('HMGET', key, 'op', 'id', 'parent', 'phase', 'stage', 'old', 'new', 'group', 'cursor', 'error', 'if')
local op, id, parent, phase, stage, old, new = f[1], f[2], f[3], f[4], f[5], split(f[6]), split(f[7])
local group, cursor, wrong, version = tonumber(f[8]), f[9], f[10], f[11] or ''
if not op then return { 'end', 'done', '' } end

local function enter(next_phase, next_stage)
  call('UNLINK', todo)
  call('HSET', key, 'phase', next_phase, 'stage', next_stage or '', 'group', 1, 'cursor', '0')
  return { 'go' }
end

local function end_job(how, why)
  call('HSET', key, 'phase', how, 'error', why or '')
  call('EXPIRE', key, 3600)
  call('UNLINK', todo)
  call('SREM', base .. 'jobs', n)
  return { 'end', how, why or '' }
end

local function give_up(why)
  call('HSET', key, 'error', why)
  return enter('undo')
end

-- A part of the subtree through `command` (SADD, SREM) for two of the ancestors. A branch of a few hundred nodes goes
-- by its own set, which Redis gives several times faster than a scan of the whole. What is still to do is a list: `x`
-- stands for all that is below x, `x:cursor` for a scan of its direct children.
local function page_of(command, ancestors)
  local last, count = math.min(group + 1, #ancestors), 0
  local function put(ids)
    for i = group, #ids > 0 and last or 0 do call(command, at('children', ancestors[i]), unpack(ids)) end
    count = count + #ids
  end
  if cursor == '0' then
    put({ id })
    call('RPUSH', todo, id)
  end
  local entry
  repeat
    entry = call('RPOP', todo)
    local x, from = string.match(entry or '', '^([^:]+):?(.*)$')
    if x and from == '' and tonumber(call('HGET', at('dept', x), 'sub') or 0) <= branch then
      put(call('SMEMBERS', at('children', x)))
    elseif x then
      local page = call('SSCAN', at('direct_children', x), from == '' and '0' or from, 'COUNT', branch)
      if page[1] ~= '0' then call('RPUSH', todo, x .. ':' .. page[1]) end
      put(page[2])
      for _, child in ipairs(page[2]) do
        if tonumber(call('HGET', at('dept', child), 'sub') or 0) > 0 then call('RPUSH', todo, child) end
      end
    end
  until not entry or count * (last - group + 1) >= most
  call('HSET', key, 'group', entry and group or last + 1, 'cursor', entry and '1' or '0')
  call('HINCRBY', key, 'done', count * (last - group + 1))
  return { 'go' }
end

-- A page of the names below the node, by `act` on each, then on to the next phase.
local function page_of_names(act, next_step)
  local page = call('HSCAN', at('names', id), cursor, 'COUNT', math.ceil(most / 4)) -- two calls each
  for i = 1, #page[2], 2 do
    local taken = call('HGET', names_of(parent), page[2][i])
    local why = act(page[2][i], page[2][i + 1], taken)
    if why then return give_up(why) end
  end
  call('HSET', key, 'cursor', page[1])
  if page[1] == '0' then return next_step() end
  return { 'go' }
end

local function flip_move()
  local node, chain, target = node_of(id), climb(id), ancestors_below(parent)
  if not node or not chain or not target then return give_up('C') end
  local why = outdated(node, version)
  if why then return give_up(why) end
  flip(node, parent, chain, target, old, new)
  return enter('finish')
end

local function flip_lift()
  local node, chain = node_of(id), climb(id)
  if not node or not chain then return give_up('C') end
  local why = outdated(node, version)
  if why then return give_up(why) end
  local path, twin = path_of(chain, id), call('HGET', at('names', id), node.fold)
  node.parent = chain[1] or ''
  log_node('lift', node, node.version + 1, 'removed', path)
  call('HSET', at('dept', id), 'state', 'lifted')
  call('HSET', key, 'path', path)
  detach(node, chain, 1)
  for _, a in ipairs(chain) do call('SREM', at('children', a), id) end
  if twin then call('HSET', names_of(parent), node.fold, twin) end
  return enter('finish', 'children')
end

local function hang_up_children()
  local ids = call('SRANDMEMBER', at('direct_children', id), math.ceil(most / 10))
  if #ids == 0 then return enter('finish', 'bury') end
  for _, child in ipairs(ids) do
    local node = node_of(child)
    if node then
      call('HSET', at('dept', child), 'parent_id', parent)
      call('HSET', names_of(parent), node.fold, child)
    end
  end
  call('SADD', children_of(parent), unpack(ids))
  call('SREM', at('direct_children', id), unpack(ids))
  call('HINCRBY', key, 'done', #ids)
  return { 'go' }
end

local function mark_removed()
  local page = call('SSCAN', at('children', id), cursor, 'COUNT', math.ceil(most / 4)) -- two calls each, far apart
  for _, below in ipairs(page[2]) do
    if call('EXISTS', at('dept', below)) == 1 then call('HSET', at('dept', below), 'state', 'removed') end
  end
  call('HSET', key, 'cursor', page[1])
  call('HINCRBY', key, 'done', #page[2])
  return page[1] == '0' and enter('finish', 'sets') or { 'go' }
end

-- The node itself comes last: what is below it is found by its set.
local function next_to_bury()
  if not is_doomed(id) then return end_job('done') end
  local count = math.ceil(most / 40) -- each takes some twenty calls
  local ids = op == 'remove' and call('SRANDMEMBER', at('children', id), count) or {}
  return { 'bury', home_from(parent), unpack(#ids > 0 and ids or { id }) }
end

local steps = {
  move = {
    prepare = function() return group > #new and flip_move() or page_of('SADD', new) end,
    undo = function()
      if group <= #new then return page_of('SREM', new) end
      local node = node_of(id)
      if node then free_name(parent, node.fold, id) end
      return end_job(wrong and 'failed' or 'cancelled', wrong)
    end,
    finish = function() return group > #old and end_job('done') or page_of('SREM', old) end,
  },
  lift = {
    prepare = function()
      return page_of_names(function(fold, child, taken)
        if taken and taken ~= id and taken ~= child then return 'N' .. taken end
        if not taken then call('HSET', names_of(parent), fold, child) end
      end, flip_lift)
    end,
    undo = function()
      return page_of_names(function(fold, child, taken)
        if taken == child then call('HDEL', names_of(parent), fold) end
      end, function() return end_job(wrong and 'failed' or 'cancelled', wrong) end)
    end,
    finish = function() return stage == 'children' and hang_up_children() or next_to_bury() end,
  },
  remove = {
    finish = function()
      if stage == 'mark' then return mark_removed() end
      if stage == 'bury' then return next_to_bury() end
      return group > #old and enter('finish', 'bury') or page_of('SREM', old)
    end,
  },
}
local step = steps[op] and steps[op][phase]
if not step then return { 'end', phase or '', wrong or '' } end
return step()

-- SPDX-License-Identifier: MIT
-- Adds nodes to the tree, one after the other. What they have in common is read once and written once: what is above a
-- parent, the sets and counts of ancestors.
-- KEYS, one an event: {org}:roots (the anchor: the keys of the tree carry its tag and are derived)
-- ARGV: prefix of the tree's keys, most levels, then six an event: id or '*' (make one), parent or '', name or '' (its
--   id), folded name, manager or '', '1' = only say whether it may be
-- Reply: one line an event, joined by \n: O<id> added, or there already just so; K it may be; U no such parent; R the
--   parent is retired; D too deep; X the id is taken; N<id> that sibling has the name; B<job> the job is in the way;
--   C the tree above is damaged; !<text> refused by Redis
local base, deepest = ARGV[1], tonumber(ARGV[2])
-- include tree.lua
local jobs, out = jobs_of(), {}
local chains = {} -- parent -> a new node's ancestors below it, nearest first
local gained = {} -- ancestor -> { count = …, its new descendants }

-- A new node's ancestors below the parent, nearest first; in `refused` why there can't be one.
local function place_of(parent)
  local place = chains[parent]
  if place then return place end
  local why
  place, why = ancestors_below(parent)
  if not place then return { refused = why == 'P' and 'U' or 'C' } end
  if parent ~= '' and node_of(parent).state == 'retired' then return { refused = 'R' } end
  if #place >= deepest then return { refused = 'D' } end
  chains[parent] = place -- a refusal is not kept: a parent that is missing may be the next that is added
  return place
end

local function gain(ancestor, id, count)
  local g = gained[ancestor]
  if not g then
    g = { count = 0 }
    gained[ancestor] = g
  end
  g[#g + 1] = id
  g.count = g.count + count
end

-- One that is there: whether it is just so.
local function compare(old, parent, name, manager)
  local above, why = climb(old.id)
  if not above then return why == 'P' and 'B' or 'C' end
  if (above[1] or '') == parent and old.name == name and old.manager == manager then return 'O' .. old.id end
  return 'X'
end

local function make_id(parent, named)
  local id
  repeat id = string.format('%.0f', call('INCR', base .. 'next_id')) until call('EXISTS', at('dept', id)) == 0
  return id, not named and holder_of(parent, id)
end

local function one(id, parent, name, fold, manager, dry)
  local made, named = id == '*', name ~= ''
  local old = not made and node_of(id)
  if old then return compare(old, parent, named and name or id, manager) end
  local place, taken, there = place_of(parent), nil, nil
  if place.refused then return place.refused end
  if not named and not made then name, fold = id, string.lower(id) end
  if name ~= '' then taken, there = holder_of(parent, fold) end
  if taken and not there then return 'B' end
  if taken then
    local same = made and node_of(taken)
    if same and same.name == name and same.manager == manager then return 'O' .. taken end
    return 'N' .. taken
  end

  -- A subtree on its way gains whatever is added below it at both places.
  local both = {}
  for _, job in ipairs(jobs) do
    local levels = has(place, job.id)
    if job.id == id then return 'B' .. job.n end -- it is not yet out of all that it was in
    if job.op == 'lift' and job.id == parent then return 'B' .. job.n end
    if job.op == 'move' and job.phase == 'prepare' and levels then
      local above = job.parent ~= '' and climb(job.parent)
      if above and #above + 2 + levels > deepest then return 'B' .. job.n end
      for _, a in ipairs(job.new) do both[#both + 1] = a end
    end
  end
  if dry then return 'K' end
  if made then
    id, taken = make_id(parent, named)
    if taken then return 'N' .. taken end
    if not named then name, fold = id, id end
  end
  call('SISMEMBER', children_of(parent), id) -- an error, if it is no set, before anything is written

  local fields = { 'name', name, 'parent_id', parent }
  if manager ~= '' then fields[#fields + 1], fields[#fields + 2] = 'manager', manager end
  if fold ~= string.lower(name) then fields[#fields + 1], fields[#fields + 2] = 'fold', fold end
  log_node('add', { id = id, parent = parent, name = name, manager = manager }, 1, 'active', path_of(place, id))
  call('HSET', at('dept', id), unpack(fields))
  call('HSET', names_of(parent), fold, id)
  call('SADD', children_of(parent), id)
  for _, a in ipairs(place) do gain(a, id, 1) end
  for _, a in ipairs(both) do gain(a, id, 0) end
  return 'O' .. id
end

for i = 1, #KEYS do
  local a = 2 + (i - 1) * 6
  local sound, line = pcall(one, ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6] == '1')
  out[i] = sound and line or '!' .. tostring(type(line) == 'table' and line.err or line)
end
for ancestor, g in pairs(gained) do
  redis.pcall('SADD', at('children', ancestor), unpack(g))
  if g.count > 0 then redis.pcall('HINCRBY', at('dept', ancestor), 'sub', g.count) end
end
return table.concat(out, '\n')

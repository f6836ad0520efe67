-- SPDX-License-Identifier: MIT
-- Reads teams and the lines above them, each node above them once, however many it is above.
-- KEYS: some key of {org} (the anchor: the keys of the tree carry its tag and are derived); then dir of the employee
--   asked for; or, to have the employees counted, emps of each team asked for
-- ARGV: prefix of the tree's keys, 1 = say more of those above than their ids, employee whose teams are meant or '',
--   ids of the teams asked for
-- Reply: lines, each ended by \n:
--   L|last|id:id…                  id of the organisation's newest journal entry; ids that were too many for one call:
--                                  ask again for these
--   U                              no such employee; nothing else is said then
--   N|id|state|manager|name        a node above others, before the first line that needs it, unless it has an A line
--   A|id|above|sub|version|joined|employees|state|manager|name
--                                  an answer: ids above it, nearest first, each ended by ':'; counters; how many have
--                                  joined, how many are at home in it
--   P|id                           no such team, or it is in a subtree that is being removed
--   C|id                           the tree above it is damaged
-- There is one of A, P and C for each id in their order, then for the employee's home, then for the teams that he has
-- joined. A home that is being lifted or removed, whose people have not all been moved yet, stands for the place that
-- they will be moved to.
local base, named, employee = ARGV[1], ARGV[2] == '1', ARGV[3]
local call, pcall = redis.call, redis.pcall
local CLIMB_MAX = 1000 -- a chain that is longer goes round in a circle
local READS_MAX = 500 -- of nodes, after which no further id is begun
local UNASSIGNED = '0'
local reads, home = 0, nil
local parent_of, state_of = {}, {} -- of the nodes that this call has read
local lines, rest = { '' }, '' -- the first line is written last

-- A node above others, once. False when it can't be read: what an error gives for a key of another type has no [1].
local function read(id)
  local f = named and pcall('HMGET', base .. 'dept:' .. id, 'parent_id', 'state', 'manager', 'name')
    or pcall('HMGET', base .. 'dept:' .. id, 'parent_id', 'state')
  reads = reads + 1
  if not f[1] then return false end
  parent_of[id], state_of[id] = f[1], f[2]
  if named and f[2] ~= 'lifted' then
    lines[#lines + 1] = table.concat({ 'N', id, f[2] or 'active', f[3] or '', f[4] or '' }, '|')
  end
  return true
end

-- The ids from a node to the root, each ended by ':'; P or C when there is no such line.
local function climb(id)
  local chain, up = {}, id
  for _ = 0, CLIMB_MAX do
    if up == '' then
      chain[#chain + 1] = ''
      return table.concat(chain, ':')
    end
    if not parent_of[up] and not read(up) then return 'C' end
    if state_of[up] == 'removed' then return 'P' end
    if state_of[up] ~= 'lifted' then chain[#chain + 1] = up end
    up = parent_of[up]
  end
  return 'C'
end

local function answer(id, emps)
  local f = pcall('HMGET', base .. 'dept:' .. id, 'parent_id', 'state', 'sub', 'version', 'manager', 'name')
  reads = reads + 1
  if f.err or (not f[1] and id == home) then return 'C|' .. id end
  if not f[1] or f[2] == 'lifted' or f[2] == 'removed' then return 'P|' .. id end
  local above = climb(f[1])
  if above == 'C' or above == 'P' then return above .. '|' .. id end
  local joined = pcall('SCARD', base .. 'members:' .. id)
  if type(joined) == 'table' then return 'C|' .. id end
  parent_of[id], state_of[id] = f[1], f[2]
  return 'A|' .. id .. '|' .. above .. '|' .. (f[3] or 0) .. '|' .. (f[4] or 1) .. '|' .. joined .. '|' ..
    (emps and call('HLEN', emps) or 0) .. '|' .. (f[2] or 'active') .. '|' .. (f[5] or '') .. '|' .. (f[6] or '')
end

-- Where somebody is at home: in his department or, when that is on its way out, at the first above that takes people.
local function place_of(dept)
  local ids = climb(dept)
  if ids == 'C' then return dept end
  for id in string.gmatch(ids == 'P' and '' or ids, '[^:]+') do
    if id == dept or call('HGET', base .. 'dept:' .. id, 'state') ~= 'retired' then return id end
  end
  return UNASSIGNED
end

local ids = { unpack(ARGV, 4) }
if employee ~= '' then
  local dept = call('GET', KEYS[2])
  if not dept then return 'U\n' end
  home = place_of(dept)
  ids[#ids + 1] = home
  for _, id in ipairs(call('SMEMBERS', base .. 'user_teams:' .. employee)) do
    if id ~= home then ids[#ids + 1] = id end
  end
end
for i, id in ipairs(ids) do
  if reads > READS_MAX then
    rest = table.concat(ids, ':', i)
    break
  end
  local line = answer(id, employee == '' and KEYS[i + 1]) -- adds lines itself
  lines[#lines + 1] = line
end
lines[1] = 'L|' .. (call('GET', base .. 'last') or '') .. '|' .. rest
return table.concat(lines, '\n') .. '\n'

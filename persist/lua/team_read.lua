-- SPDX-License-Identifier: MIT
-- Reads teams and the lines above them, each node once, however many it is above.
-- KEYS: some key of {org} (the anchor: the keys of the tree carry its tag and are derived); then dir of the employee
--   asked for; or, to have people counted, emps of each team asked for
-- ARGV: prefix of the tree's keys, 1 = count the people of the teams asked for, employee whose teams are meant or '',
--   ids of the teams asked for
-- Reply: lines, each ended by \n:
--   L|last|passed|id:id…    id of the organisation's newest journal entry; 1 when a line goes through a team that is
--                           being lifted; ids that were too many for one call: ask again for these
--   U                       no such employee; nothing else is said then
--   N|sub|version|state|manager|name
--                           what is stored of the next id of the next A line
--   A|id:id…|n|joined|employees
--                           an answer: the team and those above it, nearest first, as far as no A line before has told
--                           them. The ids told are counted from 1; the line goes on with the n-th of them, 0: nowhere.
--                           How many have joined the team and are at home in it, if they are counted
--   P|id                    no such team, or it is in a subtree that is being removed
--   C|id                    the tree above it is damaged
-- There is one of A, P and C for each id in their order, then for the employee's home, then for the teams that he has
-- joined. A home that is being lifted or removed, whose people have not all been moved yet, stands for the place that
-- they will be moved to.
-- A key of another type is damage of that team alone: what may meet one is called by pcall.
local base, people, employee = ARGV[1], ARGV[2] == '1', ARGV[3]
-- include tree.lua
local protected, pcall = pcall, redis.pcall
local READS_MAX = 500 -- of nodes, after which no further id is begun
local depts, passed = base .. 'dept:', 0
local told = {} -- the number of an id that a line has told, or the letter of what is wrong above it
local count, reads = 0, 0
local lines, home = { '' }, nil -- the first line is written last

-- What is wrong with a line, for all that have been found to be in it.
local function refuse(ids, why)
  for _, id in ipairs(ids) do told[id] = why end
  return why
end

-- Climbs from a team to the root, or to what has been told. Returns its answer's first letter and the answer.
local function line_of(id)
  local ids, stored, n, at, begun = {}, {}, 0, id, reads
  while at ~= '' and not told[at] do
    local f = pcall('HMGET', depts .. at, 'parent_id', 'state', 'sub', 'version', 'manager', 'name')
    local parent, state = f[1], f[2]
    reads = reads + 1
    if not parent then return refuse(ids, at == id and id ~= home and 'P' or 'C') end
    if state == 'removed' or (state == 'lifted' and at == id) then return refuse(ids, 'P') end
    if reads - begun > CLIMB_MAX then return refuse(ids, 'C') end
    if state == 'lifted' then
      passed = 1
    else
      n = n + 1
      ids[n], told[at] = at, count + n
      stored[n] = 'N|' .. (f[3] or 0) .. '|' .. (f[4] or 1) .. '|' .. (state or 'active') .. '|' .. (f[5] or '') ..
        '|' .. (f[6] or '')
    end
    at = parent
  end
  local on = at == '' and 0 or told[at]
  if type(on) == 'string' then return refuse(ids, on) end
  if on > count then return refuse(ids, 'C') end -- a circle
  count = count + n
  for i = 1, n do lines[#lines + 1] = stored[i] end
  return 'A', table.concat(ids, ':') .. '|' .. on
end

local function answer(id, emps)
  local counts = ''
  if people then
    local joined, employees = pcall('SCARD', base .. 'members:' .. id), call('HLEN', emps)
    if type(joined) == 'table' then return 'C|' .. id end
    counts = '|' .. joined .. '|' .. employees
  end
  local letter, line = line_of(id)
  return letter .. '|' .. (line and line .. counts or id)
end

local ids, rest = { unpack(ARGV, 4) }, ''
if employee ~= '' then
  local dept = call('GET', KEYS[2])
  if not dept then return 'U\n' end
  local sound, place = protected(place_after, dept)
  home = sound and place or dept
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
  local line = answer(id, KEYS[i + 1]) -- adds lines itself
  lines[#lines + 1] = line
end
lines[1] = 'L|' .. (call('GET', base .. 'last') or '') .. '|' .. passed .. '|' .. rest
return table.concat(lines, '\n') .. '\n'

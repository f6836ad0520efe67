-- SPDX-License-Identifier: MIT
-- Lets an employee join or leave a team. His home is not among the teams that he has joined: it is EMPLOYEE.MOVE's.
-- KEYS: {org}:members:<team> (the anchor: the keys of the tree carry its tag and are derived), dir of the employee
-- ARGV: prefix of the tree's keys, join or leave, team, employee, unix ms, most teams that an employee may have joined
-- Reply: O done, or so already; U no such employee; H the team is his home; F he has joined too many; R the team is
--   retired; P no such team; C the tree above it is damaged
local base, change, team, employee, now, most = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
-- include tree.lua
local ancestors, why = climb(team)
if not ancestors then return why end
local home = call('GET', KEYS[2])
if not home then return 'U' end
home = place_after(home) or home -- of a department on its way out
if home == team then return change == 'join' and 'O' or 'H' end

local members, teams = at('members', team), at('user_teams', employee)
local sides = call('SISMEMBER', members, employee) + call('SISMEMBER', teams, team)
if change == 'join' then
  if sides == 2 then return 'O' end
  if node_of(team).state == 'retired' then return 'R' end
  if call('SCARD', teams) >= most then return 'F' end
elseif sides == 0 then
  return 'O'
end
log(table.concat({ 'J', change, team, employee, now }, '|'))
local write = change == 'join' and 'SADD' or 'SREM'
call(write, members, employee)
call(write, teams, team)
return 'O'

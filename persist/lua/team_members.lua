-- SPDX-License-Identifier: MIT
-- Says in which teams people are, so that the caller can list each of them at one place of a subtree only.
-- KEYS: some key of {org} (the anchor: the keys of the tree carry its tag and are derived), dir of each employee
-- ARGV: prefix of the tree's keys, the employees
-- Reply: lines, each ended by \n, for the employees in their order: home|team:team… with the teams that he has joined;
--   home is empty for one who is not there any more. There may be fewer than asked for: ask again for the others.
local base, lines, given = ARGV[1], {}, 0
local TEAMS_MAX = 1000 -- after which nobody else is looked at
for i = 2, #KEYS do
  if given > TEAMS_MAX then break end
  local teams = redis.call('SMEMBERS', base .. 'user_teams:' .. ARGV[i])
  given = given + #teams
  lines[#lines + 1] = (redis.call('GET', KEYS[i]) or '') .. '|' .. table.concat(teams, ':') .. '\n'
end
return table.concat(lines)

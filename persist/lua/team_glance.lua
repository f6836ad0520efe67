-- SPDX-License-Identifier: MIT
-- What the daemon's picture of the tree can't know: how far the journal is, and how many people are in teams. It is
-- said on the daemon's channel, behind the news of whatever was written before (persist/tree_watch.h).
-- KEYS: some key of {org} (the anchor); emps of each team whose people are asked for
-- ARGV: prefix of the tree's keys, channel, word, ids of these teams
-- Says: word|id of the organisation's newest journal entry, and for each team |joined|at home
-- Reply: how many have heard it; 0 also when something can't be read
local base, channel, word = ARGV[1], ARGV[2], ARGV[3]
local call, pcall = redis.call, redis.pcall
local out = { word, call('GET', base .. 'last') or '' }
for i = 4, #ARGV do
  local joined, home = pcall('SCARD', base .. 'members:' .. ARGV[i]), pcall('HLEN', KEYS[i - 2])
  if type(joined) == 'table' or type(home) == 'table' then return 0 end
  out[#out + 1] = joined
  out[#out + 1] = home
end
return call('PUBLISH', channel, table.concat(out, '|'))

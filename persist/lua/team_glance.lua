-- SPDX-License-Identifier: MIT
-- What the daemon's picture of the tree can't know: how far the journal is, and how many people are in teams. It is
-- said on the daemon's channel, behind the news of whatever was written before (persist/tree_watch.h).
-- KEYS: some key of {org} (the anchor); emps of each team whose people are asked for
-- ARGV: prefix of the tree's keys, channel, word, ids of these teams
-- Says: word|id of the organisation's newest journal entry, and for each team |joined|at home
-- Reply: how many have heard it; 0 also when something can't be read
local base, channel, word = ARGV[1], ARGV[2], ARGV[3]
local call, pcall = redis.call, redis.pcall

-- How much is in each; nil when one can't be read. Most teams have nobody: one question for all is often the only one.
local function sizes(command, keys)
  local list, some = {}, #keys > 0 and call('EXISTS', unpack(keys)) > 0
  for i, key in ipairs(keys) do
    list[i] = some and pcall(command, key) or '0'
    if type(list[i]) == 'table' then return nil end
  end
  return list
end

local members = {}
for i = 4, #ARGV do members[#members + 1] = base .. 'members:' .. ARGV[i] end
local joined, home = sizes('SCARD', members), sizes('HLEN', { unpack(KEYS, 2) })
if not joined or not home then return 0 end
local out = { word, call('GET', base .. 'last') or '' }
for i = 1, #members do
  out[#out + 1] = joined[i]
  out[#out + 1] = home[i]
end
return call('PUBLISH', channel, table.concat(out, '|'))

-- SPDX-License-Identifier: MIT
-- A page of nodes as they are stored, for the picture that a daemon has of the tree.
-- KEYS: {org}:roots (the anchor: the keys of the tree carry its tag and are derived)
-- ARGV: prefix of the tree's keys, then ids of nodes, at most 250; without any: the roots that are being lifted
-- Reply: the id of the newest entry of the organisation's journal, then for each id
--   id|parent|manager|version|state|name, where parent and manager may be empty and state active; or the id alone when
--   there is no such node, or its key is something else
local base = ARGV[1]
-- include tree.lua
local lines = { call('GET', base .. 'last') or '' }
if #ARGV == 1 then
  for _, job in ipairs(jobs_of()) do
    if job.op == 'lift' and job.phase == 'finish' and job.parent == '' then lines[#lines + 1] = job.id end
  end
end
for i = 2, #ARGV do
  local f = redis.pcall('HMGET', base .. 'dept:' .. ARGV[i], 'parent_id', 'manager', 'version', 'state', 'name')
  lines[i] = ARGV[i]
  if f[1] then
    lines[i] = table.concat({ ARGV[i], f[1], f[2] or '', f[3] or '1', f[4] or 'active', f[5] or '' }, '|')
  end
end
return lines

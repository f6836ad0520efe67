-- SPDX-License-Identifier: MIT
-- Looks at the other keys of the tree: is each of its type, does it belong to a node, and is what it lists so?
-- KEYS, ARGV, reply: see tree_check.lua and check.lua. Items besides keys: spare:<id> names that nobody has,
-- verify:<id> counts, member:<team>:<employee>. Findings:
--   TYPE        a key is of another type
--   KEY         a key of a node that does not exist
--   DSEXTRA     children list a node that is not below it, or none
--   SUB         `sub` is not the number of the descendants
--   NAMEEXTRA   a name is taken by nobody
--   MEMBER      members and user_teams disagree: he is a member
--   HOME        joined to his own home
--   NOTEAM      a member of a team that does not exist
--   NOEMPLOYEE  a member who is no employee
--   JOB         a job that nobody works on, or a number without a job
--   GONE        a removed department that nobody asks for any more
--   LAST        `last` is not the newest entry of the journal
--   COUNTER     next_id or next_job is no number
local base = ARGV[1]
-- include tree_check.lua
local GONE_MS = 70 * 86400000 -- longer than a day can stay open

local function check_belongs(kind, id)
  if not exists(id) and not deleting then finding('KEY', id, kind, REPAIR, 'UNLINK', at(kind, id)) end
end

local function check_spare(id, from)
  local parent = id == '-' and '' or id
  local l = parent ~= '' and link(parent)
  if l and (l.state == 'lifted' or l.state == 'removed') then return nil end
  return walk('HSCAN', names_of(parent), from, function(page)
    for i = 1, #page, 2 do
      local child, key = page[i + 1], names_of(parent)
      local f = ask('HMGET', at('dept', child), 'parent_id', 'name', 'fold')
      local so = f and f[1] == parent and (not f[2] or (f[3] or string.lower(f[2])) == page[i])
      if f and not so and (f[1] or not deleting) and not is_reserved(parent, child) and not is_astray(child) then
        finding('NAMEEXTRA', id, child .. ' ' .. page[i], REPAIR, 'HDEL', key, page[i])
      end
    end
  end)
end

-- The names of listed children are looked at with them.
local function check_names(id, from)
  if id ~= '-' and not exists(id) then return check_belongs('names', id) end
  if ask('EXISTS', children_of(id == '-' and '' or id)) == 0 then return check_spare(id, from) end
end

-- ---- members ----

local function part(team, employee)
  log('J|leave|' .. team .. '|' .. employee .. '|' .. string.format('%.0f', now))
  ask('SREM', at('members', team), employee)
  ask('SREM', at('user_teams', employee), team)
  return true
end

-- One membership, which at least one of the two sets knows.
local function check_member(team, employee, home)
  local _, ending = chain_of(team)
  if ending == 'removed' or home == nil then return end
  if not home then
    finding('NOEMPLOYEE', team, employee, REPAIR, part, team, employee)
  elseif not exists(team) then
    if not deleting then finding('NOTEAM', team, employee, REPAIR, part, team, employee) end
  elseif home == team then
    finding('HOME', team, employee, REPAIR, part, team, employee)
  else
    for key, value in pairs({ [at('members', team)] = employee, [at('user_teams', employee)] = team }) do
      if ask('SISMEMBER', key, value) == 0 then finding('MEMBER', team, employee, REPAIR, 'SADD', key, value) end
    end
  end
end

local function check_members(team, from)
  return walk('SSCAN', at('members', team), from, function(page)
    for _, e in ipairs(page) do
      -- What user_teams knows is looked at from there.
      if ask('SISMEMBER', at('user_teams', e), team) ~= 1 then more('member:' .. team .. ':' .. e) end
    end
  end)
end

-- ---- counts ----

-- Whether a node is certainly not below `top`; where the tree above it is damaged nothing is certain. What has been
-- climbed once is known.
local function is_stranger(known, top, id)
  if not link(id) then return not exists(id) end
  local climbed, up = {}, id
  while known[up] == nil and #climbed <= CLIMB_MAX do
    local l = link(up)
    climbed[#climbed + 1] = up
    if not l or l.state == 'removed' or l.parent == top then
      known[up] = false
    elseif l.parent == '' then
      known[up] = true
    else
      up = l.parent
    end
  end
  local verdict = known[up] or false
  for _, c in ipairs(climbed) do known[c] = verdict end
  return verdict
end

-- Goes through all that children:<id> lists. Then that number, without what does not belong and with what was missed
-- elsewhere, is what `sub` must be. `from`: cursor, strangers that stay, minus those missed, strangers in all.
local function verify(id, from)
  local l, key = link(id), at('children', id)
  local above, ending = chain_of(id)
  if not l or l.state == 'lifted' or pending[id] or (ending ~= 'root' and ending ~= 'lost') then return nil end
  local cursor, left, all = string.match(from, '^(%d+):(-?%d+):(%d+)$')
  left, all = tonumber(left), tonumber(all)
  local known = {}
  local go_on = walk('SSCAN', key, cursor, function(ids)
    for _, y in ipairs(ids) do
      if is_stranger(known, id, y) then
        all = all + 1
        if not finding('DSEXTRA', id, y, REPAIR, 'SREM', key, y) then left = left + 1 end
      end
    end
  end)
  if go_on then return string.format('%s:%.0f:%.0f', go_on, left, all) end
  local count, sub = ask('SCARD', key), ask('HGET', at('dept', id), 'sub')
  if not count or tonumber(sub or 0) == count - left then return nil end
  local right = string.format('%.0f', count - left)
  local put = right == '0' and { 'HDEL', at('dept', id), 'sub' } or { 'HSET', at('dept', id), 'sub', right }
  finding('SUB', id, (sub or 0) .. ' ' .. right, REPAIR, unpack(put))
  -- Where the set and the count were wrong alike, they may be so further up.
  if all > 0 and above[1] then more('verify:' .. above[1]) end
end

-- ---- the rest ----

local function check_jobs()
  for _, n in ipairs(ask('SMEMBERS', base .. 'jobs') or {}) do
    if ask('HEXISTS', at('job', n), 'op') == 0 then
      finding('JOB', n, 'no such job', REPAIR, 'SREM', base .. 'jobs', n)
    end
  end
end

-- What has come to its instant must be ended. What has not is given up: what it has left behind are findings too.
local function check_job(n)
  if ask('SISMEMBER', base .. 'jobs', n) ~= 0 or ask('TTL', at('job', n)) ~= -1 then return end
  local f = ask('HMGET', at('job', n), 'op', 'phase')
  if (f[1] == 'lift' or f[1] == 'remove') and f[2] == 'finish' then
    finding('JOB', n, 'nobody works on it', REPAIR, 'SADD', base .. 'jobs', n)
  else
    finding('JOB', n, 'nobody works on it', REPAIR, 'EXPIRE', at('job', n), 3600)
  end
end

local function check_gone(_, from)
  return walk('HSCAN', base .. 'gone', from, function(page)
    for i = 1, #page, 2 do
      local since = tonumber(string.match(page[i + 1], '^(%d+)|[^|]+|'))
      if not since or since < now - GONE_MS then
        finding('GONE', page[i], page[i + 1], REPAIR, 'HDEL', base .. 'gone', page[i])
      end
    end
  end)
end

local function check_last()
  local stream, last = ask('XINFO', 'STREAM', base .. 'journal'), ask('GET', base .. 'last')
  local newest = false
  for i = 1, #(stream or {}), 2 do
    if stream[i] == 'last-generated-id' then newest = stream[i + 1] end
  end
  if last == nil or last == newest or (not last and newest == '0-0') then return end
  if newest then
    finding('LAST', 'last', (last or '') .. ' ' .. newest, REPAIR, 'SET', base .. 'last', newest)
  elseif ask('EXISTS', base .. 'journal') == 0 then
    finding('LAST', 'last', last .. ' no journal', REPAIR, 'DEL', base .. 'last')
  end
end

-- A number that none that was ever given is likely to be above.
local function check_counter(name)
  local value = ask('GET', base .. name)
  if value and not string.match(value, '^%d+$') then
    finding('COUNTER', name, value, REPAIR, 'SET', base .. name, string.format('%.0f', now / 1000))
  end
end

local function check_memberships(employee, from, dir)
  local home = ask('GET', dir)
  return walk('SSCAN', at('user_teams', employee), from, function(page)
    for _, team in ipairs(page) do check_member(team, employee, home) end
  end)
end

local function check_pair(pair, _, dir)
  local team, employee = string.match(pair, '^([^:]+):(.*)$')
  if ask('SISMEMBER', at('members', team), employee) == 1 then check_member(team, employee, ask('GET', dir)) end
end

return look_through({
  children = { 'set', function(id) check_belongs('children', id) end },
  names = { 'hash', check_names },
  spare = { nil, check_spare },
  members = { 'set', check_members },
  user_teams = { 'set', check_memberships },
  member = { nil, check_pair },
  verify = { nil, verify },
  jobs = { 'set', check_jobs },
  job = { 'hash', check_job },
  gone = { 'hash', check_gone },
  journal = { 'stream', function() end },
  last = { 'string', check_last },
  next_id = { 'string', function() check_counter('next_id') end },
  next_job = { 'string', function() check_counter('next_job') end },
})

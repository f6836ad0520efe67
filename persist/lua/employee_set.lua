-- SPDX-License-Identifier: MIT
-- Sets employees: hires, renames, moves.
-- KEYS, ten an event: dir; dept hash of the new department (the anchor: the keys of the tree carry its tag and are
--   derived); emps of the new one; its day maps of today and tomorrow; emps of the old one and its day maps of today
--   and tomorrow (the new one's again where there is no old one); journal and days of the new department's partition
-- ARGV[1] = prefix of the tree's keys, ARGV[2] = now in unix ms, then seven an event: employee, name or '' (keep),
--   1 when a name was given, the department that the caller believes he is in ('' = none), the new department, journal
--   record's head, 1 when he must exist already
-- Reply: one line an event, joined by \n: O done; R<dept> he is in that department now ('' = in none), ask again;
--   T no such department; S it is retired; C the tree above it is damaged; U no such employee; E<text>
-- A move takes him out of the old department's maps where he has not punched, and into the new one's; punches stay
-- where they were made, so that the day has one row and nobody becomes absent by moving.
-- A department without employees has no maps. The first one makes them: a roster of one is whole. <dept>:since in
-- `days` is the day from which on it has maps again, so that nobody misses those of the days before.
local base, now_ms = ARGV[1], ARGV[2]
-- include tree.lua
local protected, pcall = pcall, redis.pcall
local busy = call('EXISTS', base .. 'jobs') == 1
local out = {}

local function failed(...)
  for _, got in ipairs({ ... }) do
    if type(got) == 'table' and got.err then return 'E' .. got.err end
  end
  return nil
end

-- Why nobody may come into the department, nil when he may.
local function closed_to(key, new)
  local found = pcall('HMGET', key, 'parent_id', 'state')
  if found.err then return 'E' .. found.err end
  local state = found[2]
  if not found[1] or state == 'lifted' or state == 'removed' then return 'T' end
  if busy then
    local sound, above, why = protected(climb, new)
    if not sound then return 'C' end
    if not above then return why == 'P' and 'T' or why end
  end
  return state == 'retired' and 'S' or nil
end

-- He is at home now in a team that he had joined: home and joined never overlap.
local function absorb(id, team)
  log('J|leave|' .. team .. '|' .. id .. '|' .. now_ms)
  call('SREM', at('members', team), id)
  call('SREM', at('user_teams', id), team)
end

local function one(k, a)
  local dir, dept, emps, old = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 6]
  local journal, days = KEYS[k + 9], KEYS[k + 10]
  local id, name, named, believed, new, head, must = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5],
    ARGV[a + 6], ARGV[a + 7]
  local now = pcall('GET', dir)
  if type(now) == 'table' then return 'E' .. now.err end
  if (now or '') ~= believed then return 'R' .. (now or '') end
  if must == '1' and not now then return 'U' end
  local comes, moved = now ~= new, now and now ~= new
  local refusal = comes and closed_to(dept, new)
  if refusal then return refusal end

  local record, staff = now and pcall('HGET', old, id), pcall('HLEN', emps)
  local joined = comes and pcall('SISMEMBER', at('user_teams', id), new)
  -- Who leaves a department on its way out has been, for every reader, where it would have sent him.
  local sound, place = false, nil
  if busy and moved then sound, place = protected(place_after, now) end
  local between = sound and place and place ~= new and pcall('SISMEMBER', at('user_teams', id), place)
  local wrong = failed(record, staff, joined, between)
  if wrong then return wrong end
  local head4 = '|||'
  local oldname = ''
  if record then
    head4, oldname = string.match(record, '^([^|]*|[^|]*|[^|]*|)(.*)$')
    if not head4 then return 'Ethe record of this employee is damaged' end
  end
  if named ~= '1' then name = oldname end
  if record and not moved and name == oldname then return 'O' end
  local sets, open, fields = {}, {}, {}
  for d = 4, 5 do
    -- The key of a map ends with its date.
    fields[d] = new .. ':' .. string.sub(KEYS[k + d], -10)
    sets[d], open[d] = moved and pcall('HGET', KEYS[k + d + 3], id), pcall('HEXISTS', KEYS[k + d], '#')
    local day = staff == 0 and pcall('HGET', days, fields[d])
    wrong = failed(sets[d], open[d], day)
    if wrong then return wrong end
    -- A day that `days` knows had a map: one that is gone is not made again, since somebody may have been on it.
    if staff == 0 and open[d] == 0 and not day then open[d] = 'make' end
  end

  wrong = failed(pcall('XADD', journal, '*', 'e', head .. (now or '-') .. '|' .. name))
  if wrong then return wrong end
  if joined == 1 then absorb(id, new) end
  if between == 1 then absorb(id, place) end
  call('HSET', emps, id, head4 .. name)
  call('SET', dir, new)
  if moved then call('HDEL', old, id) end
  local rday = string.match(head4, '^([^|]*)|')
  for d = 4, 5 do
    local set = sets[d]
    if set == '' then call('HDEL', KEYS[k + d + 3], id) end
    if open[d] == 'make' then
      call('HSET', KEYS[k + d], '#', '1')
      call('HSET', days, fields[d], 'open')
      if d == 4 then call('HSET', days, new .. ':since', string.sub(KEYS[k + d], -10)) end
      open[d] = 1
    end
    -- In the old department's map or, when he was moved before, in another's.
    local punched = (set and set ~= '') or rday == string.sub(KEYS[k + d], -10)
    if not punched and (moved or not now) and open[d] == 1 then call('HSETNX', KEYS[k + d], id, '') end
  end
  return 'O'
end

for i = 0, #KEYS / 10 - 1 do out[i + 1] = one(i * 10, 2 + i * 7) end
return table.concat(out, '\n')

-- SPDX-License-Identifier: MIT
-- What the two scripts of the check share; they include it behind `local base = …`. A check reads what may be damaged
-- in any way: it asks in a manner that survives it. A repair is one step that is right by itself, so that it may end
-- after any of them.
-- KEYS: {org}:roots (the anchor), then one an item: dir of its employee, else the anchor again
-- ARGV: prefix of the tree's keys; 0 look, 1 repair what is derived, 2 and 3 the truth too; unix ms; then two an item:
--   what is to be looked at, and where to go on in it ('' = at its beginning)
-- Reply: how many of the items are done, where to go on in the next, then lines: a finding, code|id|1 when it has been
--   repaired|detail; a further item behind '+'; one that has been looked at behind '='
-- Items are names of keys without the prefix, and others that one of the scripts has asked for.
-- include tree.lua
local mode, now = tonumber(ARGV[2]), tonumber(ARGV[3])
local REPAIR, ADOPT, LOSE, NEVER = 1, 2, 3, 9 -- the least mode in which a finding is repaired
local BUDGET = 500 -- commands to Redis, after which nothing new is begun: 1 to 2 ms
local PAGE = 100

-- Findings whose repair may bring back what somebody who has read the tree before does not know of.
local BACK = { DSMISS = 1, DCMISS = 1, DCEXTRA = 1, ORPHAN = 1, CYCLE = 1, STATE = 1, TYPE = 1 }

local spent, brought_back = 0, false
local lines = { 0, '' }

-- The reply of a command; nil when the key is of another type, or the command was refused.
local function ask(...)
  spent = spent + 1
  local got = redis.pcall(...)
  if type(got) == 'table' and got.err then return nil end
  return got
end

-- Tells of a finding; in its mode it is repaired by a command, or by a function that says whether it is.
local function finding(code, id, detail, least, fix, ...)
  local done = false
  if mode >= least then
    if type(fix) == 'function' then
      local sound, fixed = pcall(fix, ...)
      done = sound and fixed
    else
      done = ask(fix, ...) ~= nil
    end
  end
  brought_back = brought_back or (done and BACK[code])
  lines[#lines + 1] = table.concat({ code, id, done and 1 or 0, detail }, '|')
  return done
end

-- What else must be looked at.
local function more(item) lines[#lines + 1] = '+' .. item end

-- Big changes under way: the sets of `pending` nodes are being filled or emptied, and while nodes are being deleted
-- one that is not there is no finding.
local sound, jobs = pcall(jobs_of)
if not sound then jobs = {} end
local pending, deleting = {}, false
for _, job in ipairs(jobs) do
  for _, id in ipairs(job.old) do pending[id] = true end
  for _, id in ipairs(job.new) do pending[id] = true end
  if job.op ~= 'move' then deleting = true end
end

-- A node's parent and state, false when there is no such node.
local links = {}
local function link(id)
  local l = links[id]
  if l == nil then
    local f = ask('HMGET', at('dept', id), 'parent_id', 'state')
    l = f and f[1] and { parent = f[1], state = f[2] or 'active' } or false
    links[id] = l
  end
  return l
end

local function exists(id) return ask('EXISTS', at('dept', id)) == 1 end

-- Whether a job has set a name aside for a node that is to arrive there.
local function is_reserved(parent, id)
  for _, job in ipairs(jobs) do
    local arrives = job.id == id or (job.op == 'lift' and link(id) and link(id).parent == job.id)
    if job.parent == parent and arrives then return true end
  end
  return false
end

-- The ancestors as climb() has them, as far as there are any, and how they end: 'root'; 'removed' at a node that is
-- being removed; 'lost' at a node that is not there, which is the third; 'loop' back at the node itself; 'tangle' in a
-- loop that it is not part of.
local function chain_of(id)
  local list, up, mark, mark_at = {}, id, nil, 8
  for step = 1, CLIMB_MAX do
    local l = link(up)
    if not l then return list, 'lost', up end
    if l.state == 'removed' then return list, 'removed' end
    if up ~= id and l.state ~= 'lifted' then list[#list + 1] = up end
    up = l.parent
    if up == '' then return list, 'root' end
    if up == id then return list, 'loop' end
    if up == mark then break end
    if step == mark_at then mark, mark_at = up, 2 * step end
  end
  return list, 'tangle'
end

-- Whether a node hangs nowhere by its own fault: what it was below may still list it, and that is the better witness.
local function is_astray(id)
  local l, _, ending, lost = link(id), chain_of(id)
  return ending == 'loop' or (lost == id and exists(id)) or (l and lost == l.parent and not exists(lost))
end

-- Walks through a key from the cursor on while the budget lasts; returns where to go on, nil at the end.
local function walk(command, key, cursor, fn)
  repeat
    local page = ask(command, key, cursor, 'COUNT', PAGE)
    if not page then return nil end
    fn(page[2])
    cursor = page[1]
  until cursor == '0' or spent >= BUDGET
  return cursor ~= '0' and cursor or nil
end

local function wrong_type(kind, id, is)
  local key = id ~= '' and at(kind, id) or base .. kind
  finding('TYPE', id ~= '' and id or kind, kind .. ' is a ' .. is, ADOPT, 'RENAMENX', key, key .. ':damaged')
end

-- Does the items of this call. `kinds`: kind of item -> the type of its key, nil when it is none or needs no look, and
-- who looks at it. at_last() does what is done for all together.
local function look_at(kinds, at_last)
  for i = 4, #ARGV, 2 do
    if spent >= BUDGET then break end
    local kind, id = string.match(ARGV[i], '^([^:]+):?(.*)$')
    local expected, look = kinds[kind][1], kinds[kind][2]
    local is = expected and ask('TYPE', base .. ARGV[i]).ok
    if is and is ~= 'none' and is ~= expected then
      wrong_type(kind, id, is)
    elseif is ~= 'none' or id == '' then -- one of a node's keys may have gone since it was named
      local go_on = look(id, ARGV[i + 1], KEYS[i / 2])
      if go_on then
        lines[2] = go_on
        break
      end
    end
    lines[1] = lines[1] + 1
  end
  if at_last then at_last() end
  if brought_back then pcall(log, 'Z|repaired') end
  return lines
end

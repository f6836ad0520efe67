-- SPDX-License-Identifier: MIT
-- What the scripts of the checks share; they include it behind `local base = …`. A check reads what may be damaged in
-- any way: it asks in a manner that survives it. A repair is one step that is right by itself, so that it may end after
-- any of them.
-- ARGV[2]: the mode; from ARGV[4] on two an item: what is to be looked at, and where to go on in it ('' = at its
--   beginning)
-- Reply: how many of the items are done, where to go on in the next, then lines: a finding, code|id|queue or ''|1 when
--   it has been repaired|detail; a further item behind '+'; one that has been looked at behind '='; one that is too big
--   to be looked at behind '-'
-- Items are names of keys without the prefix, and others that a script has asked for.
local mode = tonumber(ARGV[2])
local REPAIR, NEVER = 1, 9 -- the least mode in which a finding is repaired
local BUDGET = 500 -- commands to Redis, after which nothing new is begun: 1 to 2 ms
local PAGE = 100

local spent = 0
local lines = { 0, '' }

-- The reply of a command; nil when the key is of another type, or the command was refused.
local function ask(...)
  spent = spent + 1
  local got = redis.pcall(...)
  if type(got) == 'table' and got.err then return nil end
  return got
end

-- Tells of a finding; in its mode it is repaired by a command, or by a function that says whether it is.
local function found(code, id, queue, detail, least, fix, ...)
  local done = false
  if mode >= least then
    if type(fix) == 'function' then
      local sound, fixed = pcall(fix, ...)
      done = sound and fixed
    else
      done = ask(fix, ...) ~= nil
    end
  end
  lines[#lines + 1] = table.concat({ code, id, queue, done and 1 or 0, detail }, '|')
  return done
end

-- What else must be looked at.
local function more(item) lines[#lines + 1] = '+' .. item end

-- Walks through a key from the cursor on while the budget lasts; returns where to go on, nil at the end.
local function walk(command, key, cursor, fn)
  cursor = cursor == '' and '0' or cursor
  repeat
    local page = ask(command, key, cursor, 'COUNT', PAGE)
    if not page then return nil end
    fn(page[2])
    cursor = page[1]
  until cursor == '0' or spent >= BUDGET
  return cursor ~= '0' and cursor or nil
end

-- Does the items of this call. `kinds`: kind of item -> the type of its key, nil when it is none or needs no look, and
-- who looks at it; wrong_type() is told of a key of another type.
local function look_at(kinds, wrong_type)
  for i = 4, #ARGV, 2 do
    if spent >= BUDGET then break end
    local kind, id = string.match(ARGV[i], '^([^:]+):?(.*)$')
    local expected, look = kinds[kind][1], kinds[kind][2]
    local is = expected and ask('TYPE', base .. ARGV[i]).ok
    if is and is ~= 'none' and is ~= expected then
      wrong_type(kind, id, is)
    elseif is ~= 'none' or id == '' then -- one of the keys may have gone since it was named
      local go_on = look(id, ARGV[i + 1], KEYS[i / 2])
      if go_on then
        lines[2] = go_on
        break
      end
    end
    lines[1] = lines[1] + 1
  end
end

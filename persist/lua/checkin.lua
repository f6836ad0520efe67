-- SPDX-License-Identifier: MIT
-- Check-ins of one turn of the loop, of any number of departments.
-- KEYS, four an event: emps of the home department, day map, days and journal of the day map's partition
-- ARGV[1] = today's work date, ARGV[2] = most punches of a set, then six an event:
--   employee, punch (I|O|U and unix ms), event id or '', work date, department of the day map, journal record's head
-- Reply: one line an event, joined by \n:
--   N<set>  accepted, the day's punches now      D<set>  a repeat: nothing changed
--   L       accepted for a day that is closed    U       no such employee in that department
--   M<dept> the day's punches are in another department's map: ask again with that one
--   E<text> refused by Redis, nothing was done
-- A set that is full loses a punch that is neither the first nor the last of its direction: what the day is judged by
-- stays, and a reader that repeats itself can't keep anyone from going home. The journal has them all.
-- Everything is read and judged first. Writes go partition by partition, the journal entry before the rest: if it is
-- refused (out of memory, wrong type), all of that partition is refused and nothing of it is written.
local today, most = ARGV[1], tonumber(ARGV[2])
local count = #KEYS / 4
local out, parts, order = {}, {}, {}
local records, maps = {}, {} -- what this call has changed so far: emps key .. id -> record, day key .. id -> set
local find, call, pcall = string.find, redis.call, redis.pcall

local function part_of(journal)
  local part = parts[journal]
  if not part then
    part = { journal = journal, log = {}, events = {}, keys = {}, writes = {} }
    parts[journal] = part
    order[#order + 1] = part
  end
  return part
end

local function write(part, key, field, value)
  local w = part.writes[key]
  if not w then
    w = {}
    part.writes[key] = w
    part.keys[#part.keys + 1] = key
  end
  w[#w + 1] = field
  w[#w + 1] = value
end

local function log(part, i, head, flag, set, name)
  local n = #part.log
  part.log[n + 1] = 'e'
  part.log[n + 2] = head .. flag .. '|' .. set .. '|' .. name
  part.events[#part.events + 1] = i
end

-- Without one punch of the direction that has the most, when there are too many. All instants have as many digits.
local function thin(set)
  local of, total = { I = {}, O = {}, U = {} }, 0
  for token in string.gmatch(set, '%S+') do
    local list = of[string.sub(token, 1, 1)]
    if list then list[#list + 1] = token end
    total = total + 1
  end
  if total < most then return set end
  local longest = of.I
  for _, list in pairs(of) do
    if #list > #longest then longest = list end
  end
  table.sort(longest)
  local drop, kept = longest[2], {}
  if #longest < 3 then return set end
  for token in string.gmatch(set, '%S+') do
    if token ~= drop then kept[#kept + 1] = token end
  end
  return table.concat(kept, ' ')
end

local function one(i, emps, day, days, journal, id, punch, event, date, dept, head)
  local rkey, mkey = emps .. ' ' .. id, day .. ' ' .. id
  local record = records[rkey]
  if not record then
    record = pcall('HGET', emps, id)
    if not record then return 'U' end
    if type(record) == 'table' then return 'E' .. record.err end
  end
  local rday, rdept, _, name = string.match(record, '^([^|]*)|([^|]*)|([^|]*)|(.*)$')
  if not rday then return 'Ethe record of this employee is damaged' end
  if rday == date and rdept ~= dept then return 'M' .. rdept end

  local set, marker = maps[mkey], true
  if not set then
    local got = pcall('HMGET', day, '#', id)
    if got.err then return 'E' .. got.err end
    marker, set = got[1], got[2]
    if not marker or not set then
      local field = dept .. ':' .. date
      local state = pcall('HGET', days, field)
      if type(state) == 'table' then return 'E' .. state.err end
      if date < today or state == 'closing' or state == 'closed' then
        log(part_of(journal), i, head, 'L', '', name)
        return 'L'
      end
      if not state then write(part_of(journal), days, field, 'open') end
      set = set or ''
    end
  end

  local s = ' ' .. set .. ' '
  if find(s, ' ' .. punch .. ' ', 1, true) or find(s, ' ' .. punch .. '#', 1, true) or
      (event ~= '' and find(s, '#' .. event .. ' ', 1, true)) then
    if maps[mkey] then -- perhaps of what this very call is about to write: if that is refused, so is this
      local events = part_of(journal).events
      events[#events + 1] = i
    end
    return 'D' .. set
  end
  if #set >= 14 * most then set = thin(set) end
  if event ~= '' then punch = punch .. '#' .. event end
  set = set == '' and punch or set .. ' ' .. punch

  local part = part_of(journal)
  maps[mkey] = set
  write(part, day, id, set)
  if date >= rday then
    record = date .. '|' .. dept .. '|' .. set .. '|' .. name
    records[rkey] = record
    write(part, emps, id, record)
  end
  log(part, i, head, 'N', set, name)
  return 'N' .. set
end

local k, a = 0, 2
for i = 1, count do
  out[i] = one(i, KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4],
    ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6])
  k, a = k + 4, a + 6
end

for _, part in ipairs(order) do
  local id = pcall('XADD', part.journal, '*', unpack(part.log))
  if type(id) == 'table' and id.err then
    for _, i in ipairs(part.events) do out[i] = 'E' .. id.err end
  else
    for _, key in ipairs(part.keys) do call('HSET', key, unpack(part.writes[key])) end
  end
end
return table.concat(out, '\n')

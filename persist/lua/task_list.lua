-- SPDX-License-Identifier: MIT
-- A page of a walk over the tasks of a queue: place by place, each in its order.
-- KEYS: T queue_info:<queue> (the anchor: the other keys carry its tag and are derived)
-- ARGV: the places, in the order of the walk, joined by blanks; how many rows at most; lowest and highest priority;
--   lowest and highest sequence number; worker or ''; cursor: how far the walk has got, '' at its beginning
-- Reply: the cursor for the next page, '' at the end; then the rows
-- include task_row.lua
local base, queue = string.match(KEYS[1], '^(.-{[^}]*}:)queue_info:(.*)$')
local most, low, high = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local first, last, worker = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local BAND = 2 ^ 49 -- sequence numbers of one priority
local SCORE_MAX = 2 ^ 53
local HOUR = 3600000000 -- µs
local CHUNK = 100
local WORK_MAX = 300 -- rows read, some 1.5 ms; to look at an id is a fifth of it
local BYTES_MAX = 262144 -- of rows, after which a page ends
local SET_MAX = 300 -- tasks of a worker that are read at once
local status_at = { ready = 'pending', delayed = 'pending', running = 'running', success = 'success', failed = 'failed',
  timeout = 'timeout', cancelled = 'cancelled' }
local rows, work, bytes = {}, 0, 0
-- Where the walk is: the place, how far it is walked, and the entry that was looked at last.
local at = {}

local function write_cursor()
  local hex = string.gsub(at.member, '.', function(c) return format('%02x', string.byte(c)) end)
  return table.concat({ at.place, at.bound, at.score, hex }, ':')
end

local function read_cursor(text)
  local hex
  at.place, at.bound, at.score, hex = string.match(text, '^(%a+):([^:]*):([^:]*):(%x*)$')
  at.member = string.gsub(hex, '%x%x', function(c) return string.char(tonumber(c, 16)) end)
end

local function number(n) return format('%.0f', n) end

-- The row when the entry is wanted. What is at a place where its task says it is not, is nothing.
local function wanted(place, score, id)
  local seq = #id == 12 and tonumber(string.sub(id, 1, 10), 32)
  work = work + 0.2
  if not seq or seq < first or seq > last then return end
  work = work + 0.8
  local f = pcall('HMGET', base .. 'task:' .. id, unpack(FIELDS))
  local priority = tonumber(f[3])
  if f[1] ~= queue or f[2] ~= status_at[place] or not priority or priority < low or priority > high or
    (worker ~= '' and f[10] ~= worker) then
    return
  end
  local row = row_of(id, place, tonumber(score), f, '', '')
  bytes = bytes + #row
  return row
end

-- Entries as member, score, member, score. True when the page is over, false when what follows is past `bound`.
local function look(place, entries, bound)
  for i = 1, #entries, 2 do
    if tonumber(entries[i + 1]) > bound then return false end
    if work >= WORK_MAX or bytes >= BYTES_MAX then return true end
    local row = wanted(place, entries[i + 1], entries[i])
    if row and #rows == most then return true end
    rows[#rows + 1] = row
    at.member, at.score = entries[i], entries[i + 1]
  end
end

-- How many entries are not behind the place where the walk has got to.
local function passed(key)
  if call('ZSCORE', key, at.member) == at.score then return call('ZRANK', key, at.member) + 1 end
  local from, to = call('ZCOUNT', key, '-inf', '(' .. at.score), call('ZCOUNT', key, '-inf', at.score)
  while from < to do
    local middle = floor((from + to) / 2)
    if call('ZRANGE', key, middle, middle)[1] < at.member then from = middle + 1 else to = middle end
  end
  return from
end

local function walk_range(place, from, to)
  local key = place_key(base, queue, place)
  local behind = at.score ~= '' and tonumber(at.score) >= from
  local rank = behind and passed(key) or call('ZCOUNT', key, '-inf', '(' .. number(from))
  while true do
    local entries = call('ZRANGE', key, rank, rank + CHUNK - 1, 'WITHSCORES')
    local over = look(place, entries, to)
    if over ~= nil or #entries == 0 then return over end
    rank = rank + CHUNK
  end
end

-- A worker's few among many that run: the same entries in the same order.
local function walk_set(bound)
  local key, entries, flat = place_key(base, queue, 'running'), {}, {}
  local from = at.score ~= '' and tonumber(at.score) or 0
  for _, id in ipairs(call('SMEMBERS', base .. 'worker:' .. worker)) do
    local text = call('ZSCORE', key, id)
    local score = tonumber(text)
    if score and (score > from or (score == from and id > at.member)) then
      entries[#entries + 1] = { id = id, score = score, text = text }
    end
  end
  table.sort(entries, function(a, b) return a.score < b.score or (a.score == b.score and a.id < b.id) end)
  for _, entry in ipairs(entries) do
    flat[#flat + 1] = entry.id
    flat[#flat + 1] = entry.text
  end
  return look('running', flat, bound)
end

-- Ageing has moved tasks up, to a better priority than their own.
local function walk_ready(bound)
  local aged = call('HGET', KEYS[1], 'aged')
  for band = aged and 1 or low, high do
    local from, to = band * BAND + first, band * BAND + math.min(last, bound)
    if (at.score == '' or tonumber(at.score) <= to) and walk_range('ready', from, to) then return true end
  end
end

-- A place is walked as far as it reached when the walk came to it, so that a walk ends however much comes in behind it.
-- A heartbeat moves what runs: an hour is left to get to it.
local function bound_of(place)
  if place == 'ready' then return tonumber(call('GET', base .. 'task_seq')) or BAND - 1 end
  local newest = call('ZRANGE', place_key(base, queue, place), 0, 0, 'REV', 'WITHSCORES')[2]
  return math.min(tonumber(newest or 0) + (place == 'running' and HOUR or 0), SCORE_MAX)
end

local function walk(place)
  local bound = tonumber(at.bound)
  if place == 'ready' then return walk_ready(bound) end
  if place == 'running' and worker ~= '' and call('SCARD', base .. 'worker:' .. worker) <= SET_MAX then
    return walk_set(bound)
  end
  return walk_range(place, 0, bound)
end

local begun = ARGV[8] == ''
if not begun then read_cursor(ARGV[8]) end
for place in string.gmatch(ARGV[1], '%S+') do
  if begun then at = { place = place, bound = number(bound_of(place)), score = '', member = '' } end
  begun = begun or place == at.place
  if begun and walk(place) then return { write_cursor(), unpack(rows) } end
end
return { '', unpack(rows) }

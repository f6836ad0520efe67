-- SPDX-License-Identifier: MIT
-- Counts what queues have.
-- KEYS: T queue_info:<queue> of each
-- Reply: an element for each, joined by '|': how many are ready, delayed, running, success, failed, timeout and
--   cancelled, how many claims wait, then COUNTERS, and the id of the task that is next. Empty is what can't be read,
--   because somebody has made its key something else, and an id that is none.
-- include task_row.lua
local COUNTERS = { 'paused', 'bytes', 'submitted', 'success', 'failed', 'timeout', 'cancelled', 'retried',
  'brought_back', 'expired', 'released', 'aged', 'dropped' }
local PLACES = { 'ready', 'delayed', 'running', 'success', 'failed', 'timeout', 'cancelled' }

local function card(key)
  local got = pcall('ZCARD', key)
  return type(got) == 'number' and got or ''
end

local function stats(key)
  local base, queue = string.match(key, '^(.-{[^}]*}:)queue_info:(.*)$')
  local row = {}
  for i, place in ipairs(PLACES) do row[i] = card(place_key(base, queue, place)) end
  row[#row + 1] = card(base .. 'waiting:' .. queue)
  local counters = pcall('HMGET', key, unpack(COUNTERS))
  for i = 1, #COUNTERS do row[#row + 1] = counters.err and '' or string.match(counters[i] or '0', '^%d+$') or '' end
  row[#row + 1] = pcall('ZRANGE', place_key(base, queue, 'ready'), 0, 0)[1] or ''
  return table.concat(row, '|')
end

local answers = {}
for i, key in ipairs(KEYS) do answers[i] = stats(key) end
return answers

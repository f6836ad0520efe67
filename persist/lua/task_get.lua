-- SPDX-License-Identifier: MIT
-- Reads tasks, whole.
-- KEYS: T task:<id> of each
-- Reply: an element for each: T<row> · U no such task · X what is stored of it is damaged, or it is not at
--   the place that it says · A the answer is long enough without it: ask again
-- include task_row.lua
local BYTES_MAX = 1048576 -- of rows, after which no further task is read
local given = 0

-- Where the task is, and its score there.
local function find(base, id, queue, status)
  for _, place in ipairs(status == 'pending' and { 'ready', 'delayed' } or { status }) do
    local score = pcall('ZSCORE', place_key(base, queue, place), id)
    if type(score) == 'string' then return place, tonumber(score) end
  end
end

local function whole(key)
  local base, id = string.sub(key, 1, -18), string.sub(key, -12)
  local fields = pcall('HMGET', key, unpack(FIELDS))
  if fields.err then return 'X' end
  local queue, status = fields[1], fields[2]
  if not queue or not status then return call('EXISTS', key) == 0 and 'U' or 'X' end
  local place, score = find(base, id, queue, status)
  local payload = pcall('GET', base .. 'payload:' .. id)
  if not place or type(payload) == 'table' or #(payload or '') ~= tonumber(fields[4] or 0) then return 'X' end
  local row = row_of(id, place, score, fields, call('HGET', key, 'result') or '', payload or '')
  given = given + #row
  return 'T' .. row
end

local answers = {}
for i, key in ipairs(KEYS) do answers[i] = given > BYTES_MAX and 'A' or whole(key) end
return answers

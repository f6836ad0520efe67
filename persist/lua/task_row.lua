-- SPDX-License-Identifier: MIT
-- What the scripts share that only look.
local call, pcall = redis.call, redis.pcall
local format, floor = string.format, math.floor
local FIELDS = { 'queue', 'status', 'priority', 'size', 'retries', 'crashes', 'max_retries', 'key', 'cancel', 'worker',
  'token', 'claimed', 'error' }
local KINDS = { ready = 'queue:', delayed = 'delayed:', running = 'lease:' }

local function place_key(base, queue, place)
  if KINDS[place] then return base .. KINDS[place] .. queue end
  return base .. 'status:' .. queue .. ':' .. place
end

-- A row: id|place|at|<FIELDS without the error>|<bytes of the error>|<of the result>|<of the payload>| and then these
-- three; empty is what there is none of. `at` is the instant of its entry there, in unix ms: when it ended, the
-- deadline or the not-before. f: its FIELDS.
local function row_of(id, place, score, f, result, payload)
  local at, failure = '', f[13] or ''
  if place ~= 'ready' then at = format('%.0f', floor(score / 1000)) end
  return id .. '|' .. place .. '|' .. at .. '|' .. f[1] .. '|' .. f[2] .. '|' .. (f[3] or '') .. '|' .. (f[4] or '') ..
    '|' .. (f[5] or '') .. '|' .. (f[6] or '') .. '|' .. (f[7] or '') .. '|' .. (f[8] or '') .. '|' .. (f[9] or '') ..
    '|' .. (f[10] or '') .. '|' .. (f[11] or '') .. '|' .. (f[12] or '') .. '|' .. #failure .. '|' .. #result .. '|' ..
    #payload .. '|' .. failure .. result .. payload
end

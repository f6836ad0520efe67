#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- What a worker says of a task that it holds: done, failed, given back.
-- KEYS: task, one an event
-- ARGV[1]: see task.lua, and behind it a blank and a random number; then four an event: D, F or R, token, result or
--   error, pause before the retry in ms or ''
-- Reply: one line an event, joined by \n:
--   O<status>|<queue>|<worker>|<retries>|<not before in ms or ->  so it is now; or has been since an earlier such call
--   S  the token does not hold    U  no such task    X  it is damaged    E<error>
-- include task.lua
math.randomseed(tonumber(match(ARGV[1], '(%d+)$')) + tonumber(clock[2]))

local function answer(t, till)
  return format('O%s|%s|%s|%d|%s', t.status, t.queue, t.worker, t.retries or 0, till and int(till) or '-')
end

-- The task waits again.
local function back(t, verb, failure)
  call('HSET', t.hash, 'status', 'pending', 'ended', verb, 'retries', t.retries)
  if failure ~= '' then call('HSET', t.hash, 'error', failure) end
  t.status = 'pending'
end

-- The pause before the next try: doubled with each, never over the most, and up to a fifth more, so that those that
-- failed together do not come back together.
local function backoff(set, retries)
  return floor(min(set.backoff_max, set.backoff * 2 ^ min(retries, 40)) * (1 + 0.2 * math.random()))
end

local function fail(t, failure, delay)
  local q, retries = t.q, tonumber(t.retries or 0)
  if retries >= tonumber(t.max_retries or q.set.retries) then
    finish(t, 'failed', 'F', '', failure)
    return answer(t)
  end
  local pause = tonumber(delay) or backoff(q.set, retries)
  local till = pause > 0 and now_ms + pause or nil
  t.retries = retries + 1
  back(t, 'F', failure)
  if till then to_delayed(q, t.id, till) else to_ready(q, t) end
  count(q, 'retried')
  tell(t, 'retry', till, '', failure, '')
  return answer(t, till)
end

local function release(t)
  t.retries = t.retries or 0
  back(t, 'R', '')
  to_ready(t.q, t)
  count(t.q, 'released')
  tell(t, 'released', nil, '', '', '')
  return answer(t)
end

local function one(key, verb, token, text, delay)
  local t, line = task_of(key)
  if not t then return line end
  if t.token ~= token then return 'S' end
  if t.status ~= 'running' then
    if (t.status == 'success' and 'D' or t.ended) ~= verb then return 'S' end
    local till = call('ZSCORE', t.q.delayed, t.id)
    return answer(t, till and floor(tonumber(till) / 1000))
  end
  from_running(t.q, t.id, t.worker)
  if verb == 'D' then
    finish(t, 'success', verb, text, '')
    return answer(t)
  elseif t.cancel then
    finish(t, 'cancelled', verb, '', verb == 'F' and text or '')
    return answer(t)
  end
  return verb == 'F' and fail(t, text, delay) or release(t)
end

local out, a = {}, 1
for i = 1, #KEYS do
  out[i] = one(KEYS[i], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4])
  a = a + 4
end
settle()
return table.concat(out, '\n')

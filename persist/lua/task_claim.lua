#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- Claims: the first ready tasks of a queue go to a worker, each with a token and a lease.
-- KEYS: queue_info of the queue, one an event
-- ARGV[1]: see task.lua; then five an event: worker, most tasks, lease in ms or '', the waiter <run>|<n> or '', when it
--   came (as W told) or ''
-- Reply: an array, an element an event:
--   T<tasks>    each <id>|<token>|<priority>|<attempt>|<deadline>|<lease in ms>|<bytes>\n and so many bytes of payload
--   N           there is nothing        W<when it came>  there is nothing, and it is registered as waiting
--   E<error>
-- include task.lua
local BYTES_MAX = 1048576 -- of the payloads of one claim of several tasks
local CALL_BYTES_MAX = 8388608 -- of those of all claims of one call: what comes behind finds nothing for now
local DROPS_MAX = 200 -- entries without a task that one claim clears away

local given = 0

-- How many of the ready tasks are for this claim: first come those who came before it and wait, and those who have been
-- woken, for a task each.
local function share(q, waiter, arrival, i)
  if q.paused then return 0 end
  if given >= CALL_BYTES_MAX then
    q.crowded = true -- who waits is woken at once
    return 0
  end
  local ready = call('ZCARD', q.ready)
  if ready == 0 then return 0 end
  local ahead = call('ZCOUNT', q.woken, now - 1000000, '+inf')
  if arrival == '' then
    ahead = ahead + call('ZCARD', q.waiting)
  else
    ahead = ahead + call('ZCOUNT', q.waiting, '-inf', '(' .. arrival)
  end
  if ahead > 0 then q.crowded = true end
  return max(0, ready - ahead)
end

-- The tasks to take, and the entries that are none.
local function choose(q, most)
  local tasks, drops, bytes = {}, {}, 0
  local from = 0
  while #tasks < most and #drops < DROPS_MAX do
    local ids = call('ZRANGE', q.ready, from, from + most - #tasks - 1)
    if #ids == 0 then break end
    for _, id in ipairs(ids) do
      local t, line = task_of(q.base .. 'task:' .. id)
      if t and t.status == 'pending' and t.queue == q.name then
        bytes = bytes + tonumber(t.size or 0)
        if #tasks > 0 and bytes > BYTES_MAX then return tasks, drops end
        tasks[#tasks + 1] = t
      else
        drops[#drops + 1] = id
        if line and line ~= 'U' then quarantine(q, 'queue', id) end
      end
    end
    from = from + #ids
  end
  if #drops >= DROPS_MAX then q.crowded = true end -- there may be tasks behind them
  return tasks, drops
end

local function hand_over(q, t, worker, lease, token, payload)
  local ms = tonumber(lease) or tonumber(t.lease) or q.set.lease
  local deadline = now_ms + ms
  call('HSET', t.hash, 'status', 'running', 'worker', worker, 'token', token, 'claimed', now_text)
  if t.ended then call('HDEL', t.hash, 'ended') end
  if lease ~= '' then call('HSET', t.hash, 'hold', lease) elseif t.hold then call('HDEL', t.hash, 'hold') end
  to_running(q, t.id, tonumber(token), deadline)
  given = given + #payload
  local come = q.part.workers[worker].come
  come[#come + 1] = t.id
  return t.id .. '|' .. token .. '|' .. t.priority .. '|' .. (t.retries or 0) + 1 .. '|' .. int(deadline) .. '|' ..
    int(ms) .. '|' .. #payload .. '\n' .. payload
end

-- In the order of the tasks; one that is missing is empty.
local function payloads_of(q, tasks)
  local keys = {}
  for i, t in ipairs(tasks) do keys[i] = q.base .. 'payload:' .. t.id end
  return call('MGET', unpack(keys))
end

-- The last of so many new tokens: above all that were, also when Redis has lost the last second of them, since never
-- behind the clock.
local function new_tokens(q, n)
  local fence = q.base .. 'task_fence'
  local last = max(natural(call('GET', fence)) or 0, floor((now - EPOCH) / 8)) + n
  call('SET', fence, int(last))
  return last
end

local function claim(i, info, worker, most, lease, waiter, arrival)
  local q = queue_at(info)
  local err = q.err or wrong('STRLEN', q.base .. 'task_fence') or worker_error(q.part, worker)
  if err then return 'E' .. err end
  if arrival ~= '' then call('ZREM', q.woken, waiter) end
  local tasks, drops = choose(q, min(tonumber(most), share(q, waiter, arrival)))
  local gone = {}
  for _, id in ipairs(drops) do gone[#gone + 1] = id end
  for _, t in ipairs(tasks) do gone[#gone + 1] = t.id end
  each(gone, function(...) call('ZREM', q.ready, ...) end)
  if #drops > 0 then count(q, 'dropped', #drops) end
  if #tasks == 0 then
    if waiter == '' then return 'N' end
    if arrival == '' then arrival = int(now + i) end
    call('ZADD', q.waiting, arrival, waiter)
    return 'W' .. arrival
  end
  if arrival ~= '' then call('ZREM', q.waiting, waiter) end
  local last = new_tokens(q, #tasks)
  local payloads = payloads_of(q, tasks)
  local out = { 'T' }
  for k, t in ipairs(tasks) do
    out[k + 1] = hand_over(q, t, worker, lease, int(last - #tasks + k), payloads[k] or '')
  end
  return table.concat(out)
end

local out, a = {}, 1
for i = 1, #KEYS do
  out[i] = claim(i, KEYS[i], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5])
  a = a + 5
end
settle()
for _, q in ipairs(order) do
  if q.crowded and not q.err then wake(q) end
end
return out

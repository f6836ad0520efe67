#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- What time does to a queue: leases run out, delayed tasks become ready, ready ones age, ended ones that MySQL has go.
-- The lists are read here, in the step that acts on them, and by one clock.
-- KEYS: queue_info of the queue
-- ARGV[1]: see task.lua; ARGV[2]: most items
-- Reply: <1 when there is more to do at once>|<expired>|<made ready>|<timed out>|<failed>|<cancelled>|<removed>|
--   <quarantined>|<1 when the journal has got something>, or E<error>
-- include task.lua
local q = queue_at(KEYS[1])
local base, name = q.base, q.name
if q.err then
  -- It keeps nobody else from being swept.
  if not q.part.err then call('ZADD', base .. 'due', now + 10000000, name) end
  return 'E' .. q.err
end
local left = tonumber(ARGV[2])
local done = { expired = 0, promoted = 0, timeout = 0, failed = 0, cancelled = 0, removed = 0, quarantined = 0 }

-- The first entries of a place up to now.
local function overdue(place)
  if left <= 0 then return {} end
  local ids = call('ZRANGEBYSCORE', place, '-inf', now, 'LIMIT', 0, left)
  left = left - #ids
  return ids
end

local function put_away(place_key, place, id)
  leave(q, place_key, id)
  quarantine(q, place, id)
  done.quarantined = done.quarantined + 1
end

local function expire(t)
  from_running(q, t.id, t.worker)
  done.expired = done.expired + 1
  local retries = tonumber(t.retries or 0)
  t.crashes = tonumber(t.crashes or 0) + 1
  local status, failure
  if t.cancel then
    status, failure = 'cancelled', ''
  elseif retries >= tonumber(t.max_retries or q.set.retries) then
    status, failure = 'timeout', 'the lease ran out'
  elseif t.crashes >= q.set.crashes then
    status, failure = 'failed', format('crashed %d times', t.crashes)
  end
  if status then
    call('HSET', t.hash, 'crashes', t.crashes)
    done[status] = done[status] + 1
    finish(t, status, 'X', '', failure)
    return
  end
  t.retries = retries + 1
  call('HSET', t.hash, 'status', 'pending', 'retries', t.retries, 'crashes', t.crashes, 'ended', 'X')
  to_ready(q, t)
  count(q, 'expired')
  tell(t, 'expired', nil, '', '', '')
end

for _, id in ipairs(overdue(q.lease)) do
  local t, line = task_of(base .. 'task:' .. id)
  if t and t.status == 'running' and t.queue == name then
    expire(t)
  elseif line and sub(line, 1, 1) == 'E' and call('TYPE', base .. 'task:' .. id).ok == 'hash' then
    call('ZADD', q.lease, 'XX', now + 10000000, id) -- it is not its fault: looked at again
  elseif t and t.queue == name then
    leave(q, q.lease, id) -- the hash says where it is
    done.quarantined = done.quarantined + 1
  else
    put_away(q.lease, 'lease', id)
  end
end

for _, id in ipairs(overdue(q.delayed)) do
  local t = task_of(base .. 'task:' .. id)
  if t and t.status == 'pending' and t.queue == name then
    leave(q, q.delayed, id)
    to_ready(q, t)
    done.promoted = done.promoted + 1
  else
    put_away(q.delayed, 'delayed', id)
  end
end

-- Ready tasks that have waited for age_after go up by a priority, and again after as long. A band is in the order of
-- submission, so nothing behind the first that is too young is older. Those that are where they belong stay in between,
-- so a long band is gone through by a cursor, in several sweeps.
local function age_band(band, from, after)
  while left > 0 do
    local till = '(' .. int((band + 1) * BAND)
    local ids = call('ZRANGEBYSCORE', q.ready, '(' .. int(from), till, 'LIMIT', 0, min(left, 100))
    if #ids == 0 then return end
    left = left - #ids
    for _, id in ipairs(ids) do
      local seq = seq_of(id)
      local priority = seq and tonumber(pcall('HGET', base .. 'task:' .. id, 'priority'))
      local up = seq and floor((now - EPOCH - seq * 8) / after) or 0
      if seq and up < 1 then return end
      local to = max(1, (priority or 0) - up)
      if priority and to < band then
        call('ZADD', q.ready, 'XX', to * BAND + seq, id)
        count(q, 'aged')
      end
      from = band * BAND + (seq or 0)
    end
  end
  return from
end

local function age()
  local after = q.set.age_after * 1000
  if after <= 0 then return end
  local at = natural(call('HGET', q.info, 'age_at')) or 0
  local stopped
  for band = max(2, floor(at / BAND)), 10 do
    stopped = age_band(band, max(at, band * BAND - 1), after)
    if stopped then break end
  end
  if stopped then
    call('HSET', q.info, 'age_at', int(stopped))
    due(q, now + 200000)
  else
    call('HDEL', q.info, 'age_at')
    if call('ZCARD', q.ready) > 0 then due(q, now + max(after / 10, 1000000)) end
  end
end
age()

-- ---- ended tasks ----

-- The ledger has seen what ended before its cursor's millisecond; or everything, when the cursor is at the end.
local function seen_until()
  local cursor = pcall('HGET', base .. 'cursor', 'ledger')
  if type(cursor) ~= 'string' then return 0 end
  local last = call('XREVRANGE', base .. 'journal', '+', '-', 'COUNT', 1)[1]
  if not last or last[1] == cursor then return now_ms end
  return tonumber(match(cursor, '^%d+')) or 0
end
local seen = seen_until()
local oldest = now - q.set.keep_for * 1000

local function let_go(place, ids)
  local keys = {}
  for _, id in ipairs(ids) do
    local payload = base .. 'payload:' .. id
    local size = pcall('STRLEN', payload)
    q.bytes = q.bytes - (type(size) == 'number' and size or 0)
    keys[#keys + 1] = base .. 'task:' .. id
    keys[#keys + 1] = payload
    leave(q, place, id)
  end
  each(keys, function(...) call('UNLINK', ...) end)
  done.removed = done.removed + #ids
  left = left - #ids
end

-- Of one status: those that the ledger has seen, and that are too many or too old.
local function thin(status)
  local place = q.status .. status
  local card = call('ZCARD', place)
  if card == 0 then return end
  local over, ids = card - q.set.keep, {}
  local till, list = '(' .. int(seen * 1000), {}
  if left > 0 then list = call('ZRANGEBYSCORE', place, '-inf', till, 'WITHSCORES', 'LIMIT', 0, left) end
  for i = 1, #list, 2 do
    if #ids >= over and tonumber(list[i + 1]) > oldest then break end
    ids[#ids + 1] = list[i]
  end
  let_go(place, ids)
  -- What is over and not in MySQL yet is looked at again soon; the rest when it gets too old.
  if over > #ids then
    due(q, now + 500000)
  elseif card > #ids then
    local first = tonumber(call('ZRANGE', place, #ids, #ids, 'WITHSCORES')[2])
    due(q, max(now + 1000000, min(now + 3600000000, first + q.set.keep_for * 1000)))
  end
end
for status in pairs(ENDS) do thin(status) end

-- ---- waiting claims of daemons that have gone ----

for _, member in ipairs(call('ZRANGE', q.waiting, 0, 99)) do
  local run = match(member, '^(.*)|[^|]*$')
  if not run or call('EXISTS', base .. 'waits:' .. run) == 0 then call('ZREM', q.waiting, member) end
end

-- ---- when to look again ----

local journalled = #q.part.log > 0 and 1 or 0
settle()
local more = left <= 0
local at = q.part.due[name]
for _, place in ipairs({ q.lease, q.delayed }) do
  local first = tonumber(call('ZRANGE', place, 0, 0, 'WITHSCORES')[2])
  if first then at = min(at or first, first) end
end
if more then at = now end
if at then call('ZADD', base .. 'due', at, name) else call('ZREM', base .. 'due', name) end
return table.concat({ more and 1 or 0, done.expired, done.promoted, done.timeout, done.failed, done.cancelled,
  done.removed, done.quarantined, journalled }, '|')

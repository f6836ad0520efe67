-- SPDX-License-Identifier: MIT
-- What the scripts of tasks share. A script judges its events one after the other; hashes of tasks are written at once,
-- so that a later event of the same call sees them, and everything else (places, workers, journal, counters) is planned
-- and written by settle(), for many tasks in one command each. What could make a write fail, a key of another type, is
-- looked for before anything is written.
-- ARGV[1] = what holds for a queue that says nothing else: numbers in the order of SETTINGS, then queues_max.
-- KEYS: an anchor an event; other keys carry the tag of their anchor.
local call, pcall = redis.call, redis.pcall
local sub, find, match, gmatch, format = string.sub, string.find, string.match, string.gmatch, string.format
local floor, min, max = math.floor, math.min, math.max

local BAND = 2 ^ 49 -- sequence numbers of one priority
local EPOCH = 1767225600000000 -- 2026 in unix microseconds: where they begin, in steps of 8
local ENDS = { success = true, failed = true, timeout = true, cancelled = true }
local SETTINGS = { 'lease', 'retries', 'crashes', 'backoff', 'backoff_max', 'max_tasks', 'max_bytes', 'keep',
  'keep_for', 'age_after' }

local clock = call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2]) -- the one clock: Redis's, in microseconds
local now_ms = floor(now / 1000)

-- A number as hands in Redis can't have spoilt it: whole enough to reckon with, or nil.
local function natural(text)
  local n = tonumber(text)
  return n and n >= 0 and n < 2 ^ 53 and n or nil
end

local defaults = {}
for number in gmatch(ARGV[1], '%S+') do defaults[#defaults + 1] = tonumber(number) end

-- A whole number as text: `..` would round what has 15 digits and more. Scores are written so, too: Redis prints a
-- number with 17 digits, which takes several times as long; so does %.0f, for where a long has but 32 bits.
local WHOLE = format('%d', 2 ^ 52) == '4503599627370496' and '%d' or '%.0f'
local function int(n) return format(WHOLE, n) end
local now_text = int(now_ms)

local function seq_of(id) return #id == 12 and tonumber(sub(id, 1, 10), 32) or nil end

-- ---- what a call touches ----

local parts = {} -- by base, the keys' common beginning
local order = {} -- of queues
local infos = {} -- queues by their key

-- A key that is there must be what the script takes it for; the text of the error when it is not.
local function wrong(command, key)
  local got = pcall(command, key)
  return type(got) == 'table' and got.err or nil, got
end

local function part_of(base)
  local part = parts[base]
  if part then return part end
  part = { base = base, log = {}, queues = {}, workers = {}, due = {} }
  part.err = wrong('XLEN', base .. 'journal') or wrong('ZCARD', base .. 'due') or
    wrong('ZCARD', base .. 'quarantine') or wrong('SCARD', base .. 'queues')
  parts[base] = part
  return part
end

-- A queue: its keys, its settings, how many tasks it has in all places, and what is planned for it.
local function queue_of(part, name)
  local q = part.queues[name]
  if q then return q end
  local base = part.base
  local info = base .. 'queue_info:' .. name
  q = { part = part, base = base, name = name, info = info, ready = base .. 'queue:' .. name,
    delayed = base .. 'delayed:' .. name, lease = base .. 'lease:' .. name, waiting = base .. 'waiting:' .. name,
    woken = base .. 'woken:' .. name,
    status = base .. 'status:' .. name .. ':', set = {}, total = 0, counts = {}, bytes = 0, gone = {}, come = {},
    ended = {} }
  part.queues[name] = q
  order[#order + 1] = q
  local got = pcall('HMGET', info, 'paused', 'bytes', unpack(SETTINGS))
  q.err = q.part.err or got.err
  if q.err then return q end
  q.paused, q.held = got[1] == '1', natural(got[2]) or 0
  for i, setting in ipairs(SETTINGS) do q.set[setting] = natural(got[i + 2]) or defaults[i] end
  for _, key in ipairs({ q.ready, q.delayed, q.lease, q.status .. 'success', q.status .. 'failed',
    q.status .. 'timeout', q.status .. 'cancelled' }) do
    local err, card = wrong('ZCARD', key)
    if err then
      q.err = err
      return q
    end
    q.total = q.total + card
  end
  q.err = wrong('ZCARD', q.waiting) or wrong('ZCARD', q.woken)
  return q
end

-- The queue of an anchor.
local function queue_at(info)
  local q = infos[info]
  if not q then
    local base, name = match(info, '^(.-{[^}]*}:)queue_info:(.*)$')
    q = queue_of(part_of(base), name)
    infos[info] = q
  end
  return q
end

-- ---- how many queues there are ----

-- A queue with nothing in it and nothing that was said of it is forgotten, its counters with it. Not one that this call
-- has to do with: what is planned for it is not there yet.
local function forget_queue(part, name)
  local base = part.base
  local said = pcall('HMGET', base .. 'queue_info:' .. name, 'paused', unpack(SETTINGS))
  if part.queues[name] or said.err then return end
  for i = 1, #SETTINGS + 1 do
    if said[i] then return end
  end
  local status = base .. 'status:' .. name .. ':'
  if call('EXISTS', base .. 'queue:' .. name, base .. 'delayed:' .. name, base .. 'lease:' .. name,
    base .. 'waiting:' .. name, status .. 'success', status .. 'failed', status .. 'timeout',
    status .. 'cancelled') > 0 then return end
  call('SREM', base .. 'queues', name)
  call('ZREM', base .. 'due', name)
  call('UNLINK', base .. 'queue_info:' .. name)
end

local TOO_MANY_QUEUES = 'there are as many queues as queues_max allows'

-- Whether there may be a queue of this name: it is there, or there are fewer than queues_max. When there are not, some
-- others are looked at that may be forgotten.
local function may_be(q)
  local queues, most = q.base .. 'queues', defaults[#SETTINGS + 1]
  if call('EXISTS', q.info) == 1 or call('SISMEMBER', queues, q.name) == 1 then return true end
  if call('SCARD', queues) < most then return true end
  for _, name in ipairs(call('SRANDMEMBER', queues, 20)) do forget_queue(q.part, name) end
  return call('SCARD', queues) < most
end

-- The set of a worker's running tasks must be one; the text of the error when it is not.
local function worker_error(part, worker)
  local w = part.workers[worker]
  if not w then
    w = { key = part.base .. 'worker:' .. worker, gone = {}, come = {} }
    w.err = wrong('SCARD', w.key)
    part.workers[worker] = w
  end
  return w.err
end

-- ---- what is planned ----

local function count(q, what, n) q.counts[what] = (q.counts[what] or 0) + (n or 1) end

local function leave(q, place, id)
  local list = q.gone[place] or {}
  q.gone[place] = list
  list[#list + 1] = id
end

local function enter(q, place, score, id)
  local list = q.come[place] or {}
  q.come[place] = list
  list[#list + 1] = int(score)
  list[#list + 1] = id
end

-- The sweep is to look at the queue then.
local function due(q, at) q.part.due[q.name] = min(at, q.part.due[q.name] or at) end

local function to_ready(q, t) enter(q, q.ready, t.priority * BAND + seq_of(t.id), t.id) end

local function to_delayed(q, id, ms)
  enter(q, q.delayed, ms * 1000 + seq_of(id) % 1000, id)
  due(q, ms * 1000)
end

local function to_running(q, id, token, deadline)
  enter(q, q.lease, deadline * 1000 + token % 1000, id)
  due(q, deadline * 1000)
end

local function from_running(q, id, worker)
  leave(q, q.lease, id)
  local gone = q.part.workers[worker].gone
  gone[#gone + 1] = id
end

local function quarantine(q, place, member)
  call('ZADD', q.base .. 'quarantine', now, place .. '|' .. q.name .. '|' .. member)
  call('ZREMRANGEBYRANK', q.base .. 'quarantine', 0, -1001)
end

-- ---- tasks ----

local NUMBERS = { priority = true, size = true, retries = true, crashes = true, max_retries = true, lease = true,
  hold = true, token = true }

-- The task of a key, with its queue; or nil and a line: U no such task, X damaged, E<error>. It has the fields of the
-- hash as they stand there, and hash, id, q.
local function task_of(key)
  local got = pcall('HGETALL', key)
  if got.err then return nil, 'E' .. got.err end
  if not got[1] then return nil, 'U' end
  local t = {}
  for i = 1, #got, 2 do
    local field, value = got[i], got[i + 1]
    if NUMBERS[field] and not find(value, '^%d+$') then return nil, 'X' end
    t[field] = value
  end
  t.hash, t.id = key, sub(key, -12)
  local running = t.status == 'running'
  if not (t.queue and t.status and t.priority and seq_of(t.id)) or (running and not (t.worker and t.token)) then
    return nil, 'X'
  end
  local q = queue_of(part_of(sub(key, 1, -18)), t.queue)
  local err = q.err or (running and worker_error(q.part, t.worker))
  if err then return nil, 'E' .. err end
  t.q, t.base = q, q.base
  return t
end

local function dedupe_key(base, queue, key) return base .. 'dedupe:' .. queue .. ':' .. key end

-- Who holds the key: a task that has not ended or, while a window lasts, any. Its id and status; or behind them an
-- error's text. A key that names no such task is dead.
local function holder_of(base, dkey)
  local id = pcall('GET', dkey)
  if type(id) == 'table' then return nil, nil, id.err end
  if not id then return end
  local status = pcall('HGET', base .. 'task:' .. id, 'status')
  if type(status) ~= 'string' then status = nil end
  if status == 'pending' or status == 'running' or call('PTTL', dkey) > 0 then return id, status or 'gone' end
end

-- The key is let go, if it still names this task.
local function let_key_go(t)
  if not t.key then return end
  local key = dedupe_key(t.base, t.queue, t.key)
  if pcall('GET', key) == t.id then call('DEL', key) end
end

-- Plans a record of the journal: persist/record.h.
local function tell(t, change, till, result, failure, payload)
  local log = t.q.part.log
  log[#log + 1] = 'e'
  log[#log + 1] = 'K|' .. change .. '|' .. t.id .. '|' .. t.queue .. '|' .. t.priority .. '|' ..
    (t.retries or '0') .. '|' .. (t.crashes or '0') .. '|' .. (t.token or '-') .. '|' .. (t.worker or '-') .. '|' ..
    (t.key or '-') .. '|' .. (t.claimed or '-') .. '|' .. now_text .. '|' .. (till and int(till) or '-') .. '|' ..
    #result .. '|' .. #failure .. '|' .. #payload .. '|' .. result .. failure .. payload
end

-- The task has come to its end. `ended` says by what its token did; nil: without it. DONE alone makes a success.
local function finish(t, status, ended, result, failure)
  local fields = { 'status', status }
  if ended and ended ~= 'D' then fields[3], fields[4] = 'ended', ended end
  if result ~= '' then fields[#fields + 1], fields[#fields + 2] = 'result', result end
  if failure ~= '' then fields[#fields + 1], fields[#fields + 2] = 'error', failure end
  call('HSET', t.hash, unpack(fields))
  if not t.window or status == 'cancelled' then let_key_go(t) end
  local list = t.q.ended[status] or {}
  t.q.ended[status] = list
  list[#list + 1] = t.id
  local payload = status ~= 'success' and pcall('GET', t.base .. 'payload:' .. t.id) or ''
  t.status = status
  count(t.q, status)
  tell(t, status, nil, result, failure, type(payload) == 'string' and payload or '')
end

-- ---- the end of a call ----

-- Claims that wait are told, in order of their arrival, as many as there are tasks for them. Those that have been told
-- and are on their way back count for a second; a daemon that has gone is not told.
local alive = {}
local function wake(q)
  if q.paused or call('EXISTS', q.waiting) == 0 then return end
  call('ZREMRANGEBYSCORE', q.woken, '-inf', now - 1000000)
  local tasks = call('ZCARD', q.ready) - call('ZCARD', q.woken)
  while tasks > 0 do
    local member = call('ZPOPMIN', q.waiting)[1]
    if not member then return end
    local run, number = match(member, '^(.*)|([^|]*)$')
    if run then
      local key = q.base .. 'waits:' .. run
      if alive[key] == nil then alive[key] = call('EXISTS', key) == 1 end
      local list = q.base .. 'wake:' .. run
      if alive[key] and type(pcall('RPUSH', list, q.name .. '|' .. number)) == 'number' then
        call('PEXPIRE', list, 60000)
        call('ZADD', q.woken, now, member)
        call('PEXPIRE', q.woken, 60000)
        tasks = tasks - 1
      end
    end
  end
end

-- Writes in pieces: a command takes so many arguments from Lua at most.
local function each(list, fn)
  for i = 1, #list, 1000 do fn(unpack(list, i, min(i + 999, #list))) end
end

local function settle_queue(q, entry_ms)
  for place, ids in pairs(q.gone) do each(ids, function(...) call('ZREM', place, ...) end) end
  for place, pairs_ in pairs(q.come) do each(pairs_, function(...) call('ZADD', place, ...) end) end
  for status, ids in pairs(q.ended) do
    local list = {}
    for i, id in ipairs(ids) do
      list[#list + 1] = int(entry_ms * 1000 + min(i - 1, 999))
      list[#list + 1] = id
    end
    each(list, function(...) call('ZADD', q.status .. status, ...) end)
    due(q, now + 1000000)
  end
  -- A counter that is no number keeps nothing else from being written; TASK.CHECK finds it.
  for what, n in pairs(q.counts) do pcall('HINCRBY', q.info, what, n) end
  if q.bytes ~= 0 then pcall('HINCRBY', q.info, 'bytes', q.bytes) end
  if q.come[q.ready] then
    if q.set.age_after > 0 then due(q, now + q.set.age_after * 1000) end
    wake(q)
  end
end

-- Puts records into the journal, as entries that a reader can take whole: its time decides when a task may go that the
-- ledger has seen.
local ENTRY_RECORDS, ENTRY_BYTES = 500, 262144
local function write_log(part)
  local log, from, bytes, id = part.log, 1, 0, nil
  for i = 2, #log, 2 do
    bytes = bytes + #log[i]
    if i == #log or bytes >= ENTRY_BYTES or i - from >= 2 * ENTRY_RECORDS then
      id = pcall('XADD', part.base .. 'journal', now_text .. '-*', unpack(log, from, i))
      if type(id) == 'table' then -- the clock went back
        id = call('XADD', part.base .. 'journal', '*', unpack(log, from, i))
      end
      from, bytes = i + 1, 0
    end
  end
  return tonumber(match(id, '^%d+'))
end

-- Writes what was planned.
local function settle()
  for _, part in pairs(parts) do
    part.entry_ms = now_ms
    if #part.log > 0 then part.entry_ms = write_log(part) end
    for _, w in pairs(part.workers) do
      each(w.gone, function(...) call('SREM', w.key, ...) end)
      each(w.come, function(...) call('SADD', w.key, ...) end)
    end
  end
  for _, q in ipairs(order) do
    if not q.err then settle_queue(q, q.part.entry_ms) end
  end
  for base, part in pairs(parts) do
    for name, at in pairs(part.due) do call('ZADD', base .. 'due', 'LT', at, name) end
  end
end

#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- Looks at the tasks of a partition from both sides: does each stand where its status says, and does each place hold
-- only what belongs there? In any order, while changes go on: a task and all its places are read in one call, so what
-- is found is so. The status in the hash is the truth.
-- KEYS: `queues` (the anchor), again for every item
-- ARGV, reply: see check.lua. ARGV[1]: see task.lua; mode 0 look, 1 repair; ARGV[3]: the partition's number
-- Items besides keys: about:<queue> what holds of it as a whole; bytes:<queue> its sum, which begins with the ids of
--   tasks in no place, joined by ',', or '?' when they are too many
-- Findings:
--   TYPE     a key is of another type                      it is put aside under the name <key>:damaged
--   FIELD    a field is missing or malformed               back to the default; the task is put aside with its payload
--                                                          when it can't be known without it
--   MISSING  a task is in no place                         put where its status says; a lease ends at once
--   TWICE    a pending task is ready and delayed           it is ready
--   SCORE    a score that can't be                         the right one; a lease ends at once
--   WORKER   a running task is not in its worker's set     added
--   PLACE    a task stands where it does not belong        taken out
--   ORPHAN   an id without a task                          quarantined, `dropped` is counted
--   MEMBER   an entry that is none                         quarantined
--   KEY      a task does not hold its key                  given to it, when it is free
--   DEDUPE   a key names no task that may hold it          freed
--   PAYLOAD  a payload without a task                      deleted
--   SIZE     a task's size is not that of its payload      left
--   QUEUE    a queue that is not among the queues          added
--            (or in the wrong partition: persist/task_check.c, left)
--   DUE      a queue has work and is not due in time       due at once
--   BYTES    `bytes` is not the sum of the sizes           the sum
--   COUNTER  a counter or setting is no number             it begins anew
local base = string.match(KEYS[1], '^(.-{[^}]*}:)')
-- include check.lua
-- include task.lua
local SUM_MAX = 1500 -- tasks of a queue whose sizes are added up in one call: about 2 ms
local LATE = 15000000 -- microseconds that the sweep may be behind
local partition = tonumber(ARGV[3])

local function at(kind, id) return base .. kind .. ':' .. id end
local function is_id(id)
  return #id == 12 and match(id, '^[0-9a-v]+$') ~= nil and tonumber(sub(id, 11), 32) == partition
end
local function is_queue(name) return #name <= 64 and name ~= '-' and match(name, '^[%w_-]+$') ~= nil end
local function is_whole(text) return match(text, '^%d+$') ~= nil end

-- Of each queue that a call meets, once.
local met = {}
local function meet(queue)
  if not met[queue] and is_queue(queue) then more('about:' .. queue) end
  met[queue] = true
end

-- The sets of a queue's tasks.
local function places_of(queue)
  local list = { at('queue', queue), at('delayed', queue), at('lease', queue) }
  for status in pairs(ENDS) do list[#list + 1] = at('status', queue .. ':' .. status) end
  return list
end

-- ---- repairs ----

local function put_aside(key) return ask('RENAMENX', key, key .. ':damaged') == 1 end

local function make_due(queue, score) return ask('ZADD', base .. 'due', 'LT', int(score), queue) ~= nil end

local function end_lease(id, f)
  local score = now_ms * 1000 + f.token % 1000
  return ask('ZADD', at('lease', f.queue), int(score), id) ~= nil and make_due(f.queue, score)
end

local function make_ready(id, f)
  return ask('ZADD', at('queue', f.queue), int(f.priority * BAND + seq_of(id)), id) ~= nil
end

-- Where the status says.
local function place(id, f)
  if f.status == 'pending' then return make_ready(id, f) end
  if f.status == 'running' then return end_lease(id, f) end
  return ask('ZADD', at('status', f.queue .. ':' .. f.status), now_ms * 1000, id) ~= nil and make_due(f.queue, now)
end

local function take_out(kind, queue, key, remove, member)
  quarantine({ base = base, name = queue }, kind, member)
  return ask(remove, key, member) ~= nil
end

local function drop(kind, queue, key, remove, id)
  if not take_out(kind, queue, key, remove, id) then return false end
  if queue ~= '' then ask('HINCRBY', at('queue_info', queue), 'dropped', 1) end
  return true
end

-- A task that can't be known goes with all that is its own; what else names it is a finding of its own.
local function put_task_aside(id, f)
  quarantine({ base = base, name = f.queue or '' }, 'task', id)
  if not put_aside(at('task', id)) then return false end
  put_aside(at('payload', id))
  if not f.queue or not is_queue(f.queue) then return true end
  for _, key in ipairs(places_of(f.queue)) do ask('ZREM', key, id) end
  if f.worker then ask('SREM', at('worker', f.worker), id) end
  if f.size then ask('HINCRBY', at('queue_info', f.queue), 'bytes', int(-f.size)) end
  return true
end

local function wrong_type(kind, id, is)
  local key = id ~= '' and at(kind, id) or base .. kind
  found('TYPE', '', '', sub(key, #base + 1) .. ' is a ' .. is, REPAIR, put_aside, key)
end

-- ---- tasks ----

-- Fields that may be missing; size is what the payload has.
local NUMBERS = { 'size', 'retries', 'crashes', 'max_retries', 'lease', 'hold', 'window' }

local function mend_number(id, field)
  if field ~= 'size' then return ask('HDEL', at('task', id), field) ~= nil end
  local size = ask('STRLEN', at('payload', id))
  return size ~= nil and ask('HSET', at('task', id), 'size', size) ~= nil
end

-- A task's fields when it can be known; tells of those that are malformed.
local function fields_of(id)
  local got = ask('HMGET', at('task', id), 'queue', 'status', 'priority', 'worker', 'token', 'key', unpack(NUMBERS))
  local f = { queue = got[1], status = got[2], priority = got[3], worker = got[4], token = got[5], key = got[6] }
  for i, field in ipairs(NUMBERS) do
    local value = got[i + 6]
    if value and not is_whole(value) then
      found('FIELD', id, f.queue or '', field .. ' ' .. value, REPAIR, mend_number, id, field)
      f[field] = nil
    else
      f[field] = tonumber(value or 0)
    end
  end
  f.windowed = got[#NUMBERS + 6] and true
  local lacks
  if not f.queue or not is_queue(f.queue) then
    lacks = 'queue'
  elseif not (f.status == 'pending' or f.status == 'running' or ENDS[f.status or '']) then
    lacks = 'status'
  elseif f.status == 'running' and not f.worker then
    lacks = 'worker'
  elseif f.status == 'running' and not is_whole(f.token or '') then
    lacks = 'token'
  end
  if lacks then
    found('FIELD', id, f.queue or '', lacks, REPAIR, put_task_aside, id, f)
    return nil
  end
  if not is_whole(f.priority or '') or tonumber(f.priority) < 1 or tonumber(f.priority) > 10 then
    found('FIELD', id, f.queue, 'priority ' .. (f.priority or ''), REPAIR, 'HSET', at('task', id), 'priority', 5)
    f.priority = 10
  end
  f.priority = tonumber(f.priority)
  return f
end

local function score_of(key, id)
  local score = ask('ZSCORE', key, id)
  return score and tonumber(score), score == nil
end

local function bad_score(id, f, kind, score, fix, ...)
  found('SCORE', id, f.queue, kind .. ' ' .. format('%.17g', score), REPAIR, fix, ...)
end

-- Ageing takes whole priorities away, nothing else.
local function check_ready(id, f, score)
  local band = floor(score / BAND)
  if score - band * BAND ~= seq_of(id) or band < 1 or band > f.priority then
    bad_score(id, f, 'queue', score, make_ready, id, f)
  end
end

local function check_delayed(id, f, score)
  local tail = seq_of(id) % 1000
  if score >= 0 and score < 2 ^ 53 and score % 1000 == tail then return end
  local sound = score >= 0 and score < 2 ^ 53
  local right = (sound and floor(score / 1000) or now_ms) * 1000 + tail
  bad_score(id, f, 'delayed', score, function()
    return ask('ZADD', at('delayed', f.queue), int(right), id) ~= nil and make_due(f.queue, right)
  end)
end

local function check_pending(id, f)
  local ready, unknown = score_of(at('queue', f.queue), id)
  local delayed, unknown_too = score_of(at('delayed', f.queue), id)
  if unknown or unknown_too then return end
  if ready and delayed then
    found('TWICE', id, f.queue, 'queue and delayed', REPAIR, 'ZREM', at('delayed', f.queue), id)
  end
  if ready then return check_ready(id, f, ready) end
  if delayed then return check_delayed(id, f, delayed) end
  found('MISSING', id, f.queue, 'pending', REPAIR, place, id, f)
end

local function check_running(id, f)
  local score, unknown = score_of(at('lease', f.queue), id)
  f.token = tonumber(f.token)
  if not score and not unknown then
    found('MISSING', id, f.queue, 'running', REPAIR, place, id, f)
  elseif score and not (score >= 0 and score < 2 ^ 53 and score % 1 == 0) then
    bad_score(id, f, 'lease', score, end_lease, id, f)
  end
  if ask('SISMEMBER', at('worker', f.worker), id) == 0 then
    found('WORKER', id, f.queue, f.worker, REPAIR, 'SADD', at('worker', f.worker), id)
  end
end

local function check_ended(id, f)
  local score, unknown = score_of(at('status', f.queue .. ':' .. f.status), id)
  if unknown then return end
  if not score then
    found('MISSING', id, f.queue, f.status, REPAIR, place, id, f)
  elseif not (score >= EPOCH and score < 2 ^ 53) then
    bad_score(id, f, f.status, score, place, id, f)
  end
end

-- With a window the key may be another's by now.
local function check_key(id, f)
  if not f.key or f.windowed then return end
  local key = dedupe_key(base, f.queue, f.key)
  local holder = ask('GET', key)
  if holder == nil or holder == id then return end
  found('KEY', id, f.queue, f.key .. (holder and ' is held by ' .. holder or ' is free'), REPAIR, function()
    return ask('SETNX', key, id) == 1
  end)
end

local function check_task(id)
  if not is_id(id) then
    found('MEMBER', '', '', 'task ' .. id, REPAIR, put_aside, at('task', id))
    return
  end
  local f = fields_of(id)
  if not f then return end
  meet(f.queue)
  if ENDS[f.status] then
    check_ended(id, f)
  else
    check_key(id, f)
    if f.status == 'pending' then check_pending(id, f) else check_running(id, f) end
  end
  local size = ask('STRLEN', at('payload', id))
  if size and f.size and size ~= f.size then found('SIZE', id, f.queue, f.size .. ', has ' .. size, NEVER) end
end

local function check_payload(id)
  if ask('EXISTS', at('task', id)) == 0 then found('PAYLOAD', id, '', '', REPAIR, 'UNLINK', at('payload', id)) end
end

local function check_dedupe(rest)
  local queue, name = match(rest, '^([^:]*):(.*)$')
  local key = at('dedupe', rest)
  local id, lasts = ask('GET', key), ask('PTTL', key) >= 0 -- 0 when it ends while the script runs
  local f = is_id(id) and ask('HMGET', at('task', id), 'queue', 'status', 'key', 'window')
  local right
  if f == nil then return end
  if f and (f[1] or f[2]) then
    right = f[1] == queue and f[3] == name and (f[4] or not ENDS[f[2]]) and not (f[4] and f[2] == 'cancelled')
  else
    right = f and lasts -- a window outlives its task
  end
  if not right then found('DEDUPE', f and id or '', queue or '', (name or rest) .. ' ' .. id, REPAIR, 'DEL', key) end
end

-- ---- places ----

local function check_entry(kind, queue, key, remove, member, fits)
  if not is_id(member) then
    found('MEMBER', '', queue, kind .. ' ' .. member, REPAIR, take_out, kind, queue, key, remove, member)
    return
  end
  local f = ask('HMGET', at('task', member), 'queue', 'status', 'worker')
  if f and not f[1] and not f[2] and ask('EXISTS', at('task', member)) == 0 then
    found('ORPHAN', member, queue, kind, REPAIR, drop, kind, queue, key, remove, member)
  elseif f and f[1] and f[2] and not fits(f) then
    found('PLACE', member, queue, kind .. ', is ' .. f[2] .. ' in ' .. f[1], REPAIR, remove, key, member)
  end
end

-- A set of tasks that are `status` in `queue`.
local function check_place(kind, queue, status, from)
  local key = at(kind, ENDS[status] and queue .. ':' .. status or queue)
  return walk('ZSCAN', key, from, function(page)
    for i = 1, #page, 2 do
      check_entry(kind, queue, key, 'ZREM', page[i], function(f) return f[1] == queue and f[2] == status end)
    end
  end)
end

local function check_worker(worker, from)
  local key = at('worker', worker)
  return walk('SSCAN', key, from, function(page)
    for _, id in ipairs(page) do
      check_entry('worker:' .. worker, '', key, 'SREM', id, function(f) return f[2] == 'running' and f[3] == worker end)
    end
  end)
end

-- ---- queues ----

-- Since when the sweep has something to do, nil when it has nothing.
local function work_since(queue)
  local since
  for _, key in ipairs({ at('lease', queue), at('delayed', queue) }) do
    local first = tonumber((ask('ZRANGE', key, 0, 0, 'WITHSCORES') or {})[2])
    if first then since = min(since or first, first) end
  end
  return since
end

-- Where the sweep can't do its work it comes again later, and once more.
local function check_due(queue)
  local since, score = work_since(queue), ask('ZSCORE', base .. 'due', queue)
  if score == nil then return end
  local late = since and score and tonumber(score) > max(since, now) + LATE
  local ended = false
  for status in pairs(ENDS) do ended = ended or (ask('ZCARD', at('status', queue .. ':' .. status)) or 0) > 0 end
  if late or (not score and (since or ended)) then
    found('DUE', '', queue, score or '', REPAIR, make_due, queue, since or now)
  end
end

local function check_info(queue)
  local list = ask('HGETALL', at('queue_info', queue)) or {}
  for i = 1, #list, 2 do
    if list[i] ~= 'paused' and list[i] ~= 'bytes' and not is_whole(list[i + 1]) then
      found('COUNTER', '', queue, list[i] .. ' ' .. list[i + 1], REPAIR, 'HDEL', at('queue_info', queue), list[i])
    end
  end
end

local function check_about(queue)
  if ask('SISMEMBER', base .. 'queues', queue) == 0 then
    found('QUEUE', '', queue, '', REPAIR, 'SADD', base .. 'queues', queue)
  end
  check_info(queue)
  check_due(queue)
end

-- The ids of all tasks of a queue, once each; nil when they are too many for one call, or a place is damaged.
local function tasks_of(queue, missing)
  local total, ids, known = 0, {}, {}
  local function add(id)
    if not known[id] then ids[#ids + 1] = id end
    known[id] = true
  end
  local places = places_of(queue)
  for _, key in ipairs(places) do total = total + (ask('ZCARD', key) or SUM_MAX + 1) end
  if total > SUM_MAX then return nil end
  for _, key in ipairs(places) do
    for _, id in ipairs(ask('ZRANGE', key, 0, -1) or {}) do add(id) end
  end
  for id in gmatch(missing, '[^,]+') do add(id) end
  return ids
end

local function check_bytes(queue, missing)
  local ids = missing ~= '?' and tasks_of(queue, missing)
  if not ids then
    lines[#lines + 1] = '-bytes:' .. queue
    return
  end
  local sum = 0
  for _, id in ipairs(ids) do
    local f = ask('HMGET', at('task', id), 'queue', 'size')
    if f and (f[1] == queue or not f[1]) then
      local size = f[2] or '0'
      sum = sum + (is_whole(size) and tonumber(size) or ask('STRLEN', at('payload', id)) or 0)
    end
  end
  local bytes = ask('HGET', at('queue_info', queue), 'bytes')
  if bytes == nil or (tonumber(bytes or 0) == sum and is_whole(bytes or '0')) then return end
  local right = int(sum)
  found('BYTES', '', queue, (bytes or '') .. ' ' .. right, REPAIR, 'HSET', at('queue_info', queue), 'bytes', right)
end

local function check_queues(_, from)
  return walk('SSCAN', base .. 'queues', from, function(page)
    for _, queue in ipairs(page) do
      if is_queue(queue) then
        meet(queue)
      else
        found('MEMBER', '', '', 'queues ' .. queue, REPAIR, take_out, 'queues', '', base .. 'queues', 'SREM', queue)
      end
    end
  end)
end

local function check_dues(_, from)
  return walk('ZSCAN', base .. 'due', from, function(page)
    for i = 1, #page, 2 do
      local queue = page[i]
      local known = is_queue(queue) and ask('EXISTS', at('queue_info', queue), unpack(places_of(queue)))
      if known == false or (known == 0 and ask('SISMEMBER', base .. 'queues', queue) == 0) then
        found('MEMBER', '', '', 'due ' .. queue, REPAIR, take_out, 'due', '', base .. 'due', 'ZREM', queue)
      else
        meet(queue)
      end
    end
  end)
end

-- Claims: those that wait, those that have been told of a task.
local function check_claims(kind, queue, from)
  local key = at(kind, queue)
  return walk('ZSCAN', key, from, function(page)
    for i = 1, #page, 2 do
      if not match(page[i], '^.*|%d+$') then
        found('MEMBER', '', queue, kind .. ' ' .. page[i], REPAIR, take_out, kind, queue, key, 'ZREM', page[i])
      end
    end
  end)
end

-- Numbers that were never given begin anew above all that were.
local function check_counter(name, right)
  local value = ask('GET', base .. name)
  if value and not is_whole(value) then
    found('COUNTER', '', '', name .. ' ' .. value, REPAIR, 'SET', base .. name, int(right))
  end
end

local function nothing() end

look_at({
  task = { 'hash', check_task },
  payload = { 'string', check_payload },
  dedupe = { 'string', check_dedupe },
  queue = { 'zset', function(queue, from) return check_place('queue', queue, 'pending', from) end },
  delayed = { 'zset', function(queue, from) return check_place('delayed', queue, 'pending', from) end },
  lease = { 'zset', function(queue, from) return check_place('lease', queue, 'running', from) end },
  status = { 'zset', function(rest, from)
    local queue, status = match(rest, '^([^:]*):(.*)$')
    if queue and ENDS[status] then return check_place('status', queue, status, from) end
  end },
  worker = { 'set', check_worker },
  queue_info = { 'hash', nothing },
  about = { nil, check_about },
  bytes = { nil, check_bytes },
  queues = { 'set', check_queues },
  due = { 'zset', check_dues },
  waiting = { 'zset', function(queue, from) return check_claims('waiting', queue, from) end },
  woken = { 'zset', function(queue, from) return check_claims('woken', queue, from) end },
  waits = { 'string', nothing },
  wake = { 'list', nothing },
  quarantine = { 'zset', nothing },
  task_seq = { 'string', function() check_counter('task_seq', (now - EPOCH) / 8) end },
  task_fence = { 'string', function() check_counter('task_fence', (now - EPOCH) / 8) end },
}, wrong_type)
return lines

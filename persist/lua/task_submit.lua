-- SPDX-License-Identifier: MIT
-- New tasks.
-- KEYS: queue_info of the queue, one an event
-- ARGV[1]: see task.lua; then nine an event: the two digits of the partition, priority, delay in ms, dedupe key or '',
--   window in ms or 0, retries or '', lease in ms or '', 1 when Redis has no room for more, payload
-- Reply: one line an event, joined by \n: N<id> · D<id>|<status> the key is held · B<text> over the budget · E<error>
-- include task.lua
local out, payloads = {}, {}

-- The next sequence number of a partition: never one that was, never behind the clock. nil when they are used up.
local function next_seq(part)
  if not part.seq then
    part.seq = natural(call('GET', part.base .. 'task_seq')) or 0
  end
  local seq = max(part.seq + 1, floor((now - EPOCH) / 8))
  if seq >= BAND then return nil end
  part.seq = seq
  return seq
end

local DIGITS = '0123456789abcdefghijklmnopqrstuv'
local function digits(n, width)
  local text = ''
  for _ = 1, width do
    local low = n % 32
    text = sub(DIGITS, low + 1, low + 1) .. text
    n = (n - low) / 32
  end
  return text
end

-- The ids of one call have most of their digits in common.
local head_of, head
local function id_of(seq, suffix)
  local low = seq % 1024
  if head_of ~= seq - low then
    head_of = seq - low
    head = digits(head_of / 1024, 8)
  end
  return head .. digits(low, 2) .. suffix
end

-- Why the queue takes no more, or nil.
local function refusal(q, size, full)
  if full == '1' then return 'Redis is nearly full' end
  if q.total >= q.set.max_tasks then return format('the queue holds %.0f tasks, max_tasks', q.total) end
  if q.held + q.bytes + size > q.set.max_bytes then return 'the payloads of the queue would pass max_bytes' end
  if not q.listed and not may_be(q) then return TOO_MANY_QUEUES end
end

local function submit(info, suffix, priority, delay, key, window, retries, lease, full, payload)
  local q = queue_at(info)
  local base = q.base
  local err = q.err or (not q.part.seq and wrong('STRLEN', base .. 'task_seq'))
  if err then return 'E' .. err end
  local dkey = key ~= '' and dedupe_key(base, q.name, key)
  if dkey then
    local id, status
    id, status, err = holder_of(q.base, dkey)
    if err then return 'E' .. err end
    if id then return 'D' .. id .. '|' .. status end
  end
  local reason = refusal(q, #payload, full)
  if reason then return 'B' .. reason end
  local seq = next_seq(q.part)
  if not seq then return 'EERR the sequence numbers of this partition are used up' end

  local id = id_of(seq, suffix)
  local fields = { 'queue', q.name, 'status', 'pending', 'priority', priority }
  local function set(name, value)
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  if #payload > 0 then
    set('size', #payload)
    payloads[#payloads + 1] = base .. 'payload:' .. id
    payloads[#payloads + 1] = payload
  end
  if retries ~= '' then set('max_retries', retries) end
  if lease ~= '' then set('lease', lease) end
  if dkey then
    set('key', key)
    if window ~= '0' then
      set('window', window)
      call('SET', dkey, id, 'PX', window)
    else
      call('SET', dkey, id)
    end
  end
  if delay ~= '0' then
    to_delayed(q, id, now_ms + tonumber(delay))
  else
    enter(q, q.ready, tonumber(priority) * BAND + seq, id)
  end
  call('HSET', base .. 'task:' .. id, unpack(fields))
  if not q.listed then
    call('SADD', base .. 'queues', q.name)
    q.listed = true
  end
  q.total, q.bytes = q.total + 1, q.bytes + #payload
  count(q, 'submitted')
  return 'N' .. id
end

local a = 1
for i = 1, #KEYS do
  out[i] = submit(KEYS[i], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7],
    ARGV[a + 8], ARGV[a + 9])
  a = a + 9
end
each(payloads, function(...) call('MSET', ...) end)
for base, part in pairs(parts) do
  if part.seq then call('SET', base .. 'task_seq', int(part.seq)) end
end
settle()
return table.concat(out, '\n')

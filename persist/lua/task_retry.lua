-- SPDX-License-Identifier: MIT
-- Brings tasks back that failed, timed out or were cancelled, as if they had not run; makes a delayed one ready now.
-- KEYS: task, one an event
-- ARGV[1]: see task.lua
-- Reply: one line an event, joined by \n: O ready · F<status> it runs, or is done · D<id> that task holds its key ·
--   U · X · E<error>
-- include task.lua
local function take_key(t)
  if not t.key then return end
  local dkey = dedupe_key(t.base, t.queue, t.key)
  local id, _, err = holder_of(t.base, dkey)
  if err then return 'E' .. err end
  if id and id ~= t.id then return 'D' .. id end
  if not t.window then call('SET', dkey, t.id) end
end

local function one(key)
  local t, line = task_of(key)
  if not t then return line end
  local q = t.q
  if t.status == 'pending' then
    if pcall('ZSCORE', q.delayed, t.id) then
      leave(q, q.delayed, t.id)
      to_ready(q, t)
    end
    return 'O'
  end
  if t.status == 'running' or t.status == 'success' then return 'F' .. t.status end
  line = take_key(t)
  if line then return line end
  call('HSET', t.hash, 'status', 'pending', 'retries', 0, 'crashes', 0)
  call('HDEL', t.hash, 'cancel', 'ended')
  leave(q, q.status .. t.status, t.id)
  to_ready(q, t)
  t.status, t.retries, t.crashes = 'pending', 0, 0
  count(q, 'brought_back')
  tell(t, 'retried', nil, '', '', '')
  return 'O'
end

local out = {}
for i = 1, #KEYS do out[i] = one(KEYS[i]) end
settle()
return table.concat(out, '\n')

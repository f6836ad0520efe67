#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- Cancels tasks: one that waits at once, one that runs by telling its worker at the next beat.
-- KEYS: task, one an event
-- ARGV[1]: see task.lua
-- Reply: one line an event, joined by \n: O cancelled · R it runs, its worker is told · F<status> it has ended · U ·
--   X · E<error>
-- include task.lua
local function one(key)
  local t, line = task_of(key)
  if not t then return line end
  if ENDS[t.status] then return 'F' .. t.status end
  if t.status == 'running' then
    if not t.cancel then call('HSET', t.hash, 'cancel', '1') end
    return 'R'
  end
  leave(t.q, t.q.ready, t.id)
  leave(t.q, t.q.delayed, t.id)
  finish(t, 'cancelled', nil, '', '')
  return 'O'
end

local out = {}
for i = 1, #KEYS do out[i] = one(KEYS[i]) end
settle()
return table.concat(out, '\n')

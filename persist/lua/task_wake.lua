#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- Passes a wake-up on that found nobody.
-- KEYS: queue_info of the queue, one an event
-- ARGV[1]: see task.lua; then an argument an event: the waiter that has gone
-- Reply: one empty line an event, joined by \n
-- include task.lua
local out = {}
for i, info in ipairs(KEYS) do
  local q = queue_at(info)
  if not q.err then
    call('ZREM', q.woken, ARGV[i + 1])
    wake(q)
  end
  out[i] = ''
end
return table.concat(out, '\n')

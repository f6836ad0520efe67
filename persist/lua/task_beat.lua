#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
-- Leases that go on.
-- KEYS: task, one an event
-- ARGV[1]: see task.lua; then two an event: token, lease in ms or '' for what it was claimed with
-- Reply: one line an event, joined by \n: O<deadline> · C<deadline> it is to be cancelled · S the token does not hold,
--   or there is no such task · X · E<error>
-- include task.lua
local function one(key, token, lease)
  local t, line = task_of(key)
  if not t then return line == 'U' and 'S' or line end
  if t.status ~= 'running' or t.token ~= token then return 'S' end
  local ms = tonumber(lease) or tonumber(t.hold) or tonumber(t.lease) or t.q.set.lease
  local deadline = now_ms + ms
  to_running(t.q, t.id, tonumber(token), deadline)
  return (t.cancel and 'C' or 'O') .. int(deadline)
end

local out, a = {}, 1
for i = 1, #KEYS do
  out[i] = one(KEYS[i], ARGV[a + 1], ARGV[a + 2])
  a = a + 2
end
settle()
return table.concat(out, '\n')

-- SPDX-License-Identifier: MIT
-- The end of a node, in two steps that one script or two may take: out of the tree, and its keys deleted.

-- Takes `count` nodes, the node itself and what goes with it, out of its parent and of its ancestors' counts.
local function detach(node, chain, count)
  call('SREM', children_of(node.parent), node.id)
  free_name(node.parent, node.fold, node.id)
  for _, a in ipairs(chain) do count_below(a, -count) end
end

-- Whether a node is to be deleted. One that was is not, although its id may have been given to another since.
local function is_doomed(id)
  local state = call('HGET', at('dept', id), 'state')
  return state == 'removed' or state == 'lifted'
end

-- Deletes the keys of a node that has no employees any more, and the memberships in it, at most so many at a time.
-- Returns how many memberships went, and whether that was all. Where days may be left to close, `path` is kept for the
-- notices of them. `attendance` are its keys: emps, the day maps of today and tomorrow, days.
local function bury(id, path, attendance, now, most)
  local members = call('SRANDMEMBER', at('members', id), most)
  for _, e in ipairs(members) do call('SREM', at('user_teams', e), id) end
  if #members > 0 then call('SREM', at('members', id), unpack(members)) end
  if call('EXISTS', at('members', id)) == 1 then return #members, false end
  if call('EXISTS', unpack(attendance, 1, 3)) > 0 or call('HEXISTS', attendance[4], id .. ':since') == 1 then
    local name = call('HGET', at('dept', id), 'name') or ''
    call('HSET', base .. 'gone', id, now .. '|' .. path .. '|' .. name)
  end
  call('UNLINK', at('dept', id), at('direct_children', id), at('children', id), at('names', id))
  return #members, true
end

-- SPDX-License-Identifier: MIT
-- The instant of a move: what is the truth changes, and every count with it, in as many writes as the tree is deep.
-- `chain` and `target` are the node's ancestors before and after, `old` and `new` those of them that lose and gain it.
local function flip(node, parent, chain, target, old, new)
  local from, old_path = node.parent, path_of(chain, node.id)
  node.parent = parent
  log_node('move', node, node.version + 1, node.state, path_of(target, node.id), old_path)
  call('HSET', at('dept', node.id), 'parent_id', parent, 'version', node.version + 1)
  call('SREM', children_of(from), node.id)
  call('SADD', children_of(parent), node.id)
  free_name(from, node.fold, node.id)
  call('HSET', names_of(parent), node.fold, node.id)
  for _, a in ipairs(old) do count_below(a, -(node.sub + 1)) end
  for _, a in ipairs(new) do count_below(a, node.sub + 1) end
end

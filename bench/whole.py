# SPDX-License-Identifier: MIT
"""Whole changes of the tree as one script each: what the jobs are compared with. They use the parts that musterd's own
scripts have in common, do nothing that the result does not need, and hold Redis up for as long as they take."""
import time

from scene import ROOT

import embed
from forest import BASE

LUA = ROOT / "persist" / "lua"


WHOLE = {
    "move": """
local base, id, parent = ARGV[1], ARGV[2], ARGV[3]
-- include tree.lua
-- include tree_flip.lua
local chain, target = climb(id), { parent, unpack(climb(parent)) }
local i, j = #chain, #target
while i > 0 and j > 0 and chain[i] == target[j] do i, j = i - 1, j - 1 end
local old, new = { unpack(chain, 1, i) }, { unpack(target, 1, j) }
local ids = call('SMEMBERS', at('children', id))
ids[#ids + 1] = id
flip(node_of(id), parent, chain, target, old, new)
for from = 1, #ids, 1000 do
  local to = math.min(from + 999, #ids)
  for _, a in ipairs(old) do call('SREM', at('children', a), unpack(ids, from, to)) end
  for _, a in ipairs(new) do call('SADD', at('children', a), unpack(ids, from, to)) end
end
""",
    "remove": """
local base, id = ARGV[1], ARGV[2]
-- include tree.lua
-- include tree_bury.lua
local node, chain = node_of(id), climb(id)
local ids = call('SMEMBERS', at('children', id))
ids[#ids + 1] = id
log_node('remove', node, node.version + 1, 'removed', path_of(chain, id))
detach(node, chain, node.sub + 1)
for from = 1, #ids, 1000 do
  local keys, to = {}, math.min(from + 999, #ids)
  for _, a in ipairs(chain) do call('SREM', at('children', a), unpack(ids, from, to)) end
  for i = from, to do
    for _, kind in ipairs({ 'dept', 'direct_children', 'children', 'names', 'members' }) do
      keys[#keys + 1] = at(kind, ids[i])
    end
  end
  call('UNLINK', unpack(keys))
end
""",
    "lift": """
local base, id = ARGV[1], ARGV[2]
-- include tree.lua
-- include tree_bury.lua
local node, chain = node_of(id), climb(id)
local kids, names = call('SMEMBERS', at('direct_children', id)), call('HGETALL', at('names', id))
log_node('lift', node, node.version + 1, 'removed', path_of(chain, id))
detach(node, chain, 1)
for _, a in ipairs(chain) do call('SREM', at('children', a), id) end
for _, kid in ipairs(kids) do call('HSET', at('dept', kid), 'parent_id', node.parent) end
for from = 1, #kids, 1000 do
  call('SADD', children_of(node.parent), unpack(kids, from, math.min(from + 999, #kids)))
end
for from = 1, #names, 1000 do
  call('HSET', names_of(node.parent), unpack(names, from, math.min(from + 999, #names)))
end
call('UNLINK', at('dept', id), at('direct_children', id), at('children', id), at('names', id))
""",
}


def text(change):
    """Its text, with the parts that musterd's own scripts have in common."""
    return embed.INCLUDE.sub(lambda line: embed.read(str(LUA / line[1].decode())), WHOLE[change].encode())


def run(scene, change, *words):
    """Seconds of one script that does all of a change."""
    sha = scene.redis.script_load(text(change))
    begun = time.monotonic()
    scene.redis.evalsha(sha, 1, BASE + "roots", BASE, *words)
    return time.monotonic() - begun

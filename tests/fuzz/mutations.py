"""Random damage: to values of JSON and configs, and to bytes."""

import json
import math
from typing import Any

from hypothesis import strategies as st

_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 2**31, 2**63, 10**30, 10**400]),
    st.floats(),
    st.sampled_from([math.nan, math.inf, -math.inf, 1e308, -0.0, 4.5]),
    st.text(max_size=8),
    st.sampled_from(
        ['', '..', '../../x', '/tmp/x', 'a/b', '\0', '<script>', 'x' * 300]
    ),
)
VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=5), inner, max_size=3),
    ),
    max_leaves=5,
)


@st.composite
def damaged(draw: Any, tree: Any) -> Any:
  """Returns a tree of which one part is replaced, removed, or doubled."""
  tree = json.loads(json.dumps(tree))
  node, place = {'': tree}, ''
  while isinstance(node[place], (dict, list)) and node[place]:
    if draw(st.integers(0, 3)) == 0:
      break
    node = node[place]
    names = list(node) if isinstance(node, dict) else range(len(node))
    place = draw(st.sampled_from(list(names)))
  kind = draw(st.sampled_from(['replace', 'replace', 'remove', 'add']))
  if kind == 'remove' and place != '':
    del node[place]
  elif kind == 'add' and isinstance(node, dict) and place != '':
    name = draw(st.one_of(st.text(max_size=5), st.just('../../x')))
    node[name] = draw(VALUES)
  else:
    node[place] = draw(VALUES)
    tree = node[place] if place == '' else tree
  return tree


@st.composite
def damaged_bytes(draw: Any, content: bytes) -> bytes:
  """Returns bytes that are cut, changed, recoded or replaced."""
  kind = draw(st.sampled_from(['cut', 'flip', 'insert', 'recode', 'replace']))
  place = draw(st.integers(0, max(len(content) - 1, 0)))
  if kind == 'cut':
    return content[:place]
  if kind == 'flip':
    flipped = content[place : place + 1] or b'\0'
    flipped = bytes([flipped[0] ^ draw(st.integers(1, 255))])
    return content[:place] + flipped + content[place + 1 :]
  if kind == 'insert':
    return content[:place] + draw(st.binary(max_size=9)) + content[place:]
  if kind == 'recode':
    encoding = draw(st.sampled_from(['utf-16', 'utf-8-sig', 'utf-7']))
    return content.decode('latin1').encode(encoding)
  return draw(st.binary(max_size=50))

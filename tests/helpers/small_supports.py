"""Small task supports, and their sets read off by drawing; shared by tests.

Sets are read off by drawing until all members have been seen, so nothing here
depends on how a set is stored.
"""

from collections.abc import Callable
import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.tasks.supports import splits as supports

NUM_DRAWS = 2048
_RANDOM = set()  # Made by `make`.


@functools.lru_cache
def make(
    task_support: str = 'random',
    num_modules: int = 4,
    max_active: int = 2,
    num_layers: int = 2,
    fraction_ood: float = 0.25,
    ood_ks: tuple[int, ...] | None = None,
) -> supports.TaskSupport:
  if ood_ks is None:  # They cost time to count if the support is random.
    fixed = task_support != 'random'
    ood_ks = tuple(k for k in (1, 2, 4, 8) if fixed and k <= num_modules)
  made = supports.make(
      task_support,
      num_modules=num_modules,
      max_active=max_active,
      num_layers=num_layers,
      fraction_ood=fraction_ood,
      ood_ks=ood_ks,
  )
  if task_support == 'random':
    _RANDOM.add(made)
  return made


@functools.lru_cache
def sampler(
    task_support: supports.TaskSupport, split: str
) -> Callable[[supports.SplitParams, jax.Array], jax.Array]:
  """Returns a function of the parameters and many keys.

  Compiled for random support only: compiling is most of the time here, and
  the operations of the other supports are compiled once for all of them.
  """
  sample = jax.vmap(
      lambda params, key: task_support.sample(params, key, split), (None, 0)
  )
  is_random = task_support in _RANDOM
  return jax.jit(sample) if is_random else sample


def draw(
    task_support: supports.TaskSupport,
    params: supports.SplitParams,
    split: str,
    seed: int = 0,
) -> np.ndarray:
  """Returns 2048 draws, [2048, L, M] bool."""
  keys = jax.random.split(jax.random.key(seed), NUM_DRAWS)
  drawn = np.asarray(sampler(task_support, split)(params, keys))
  assert drawn.dtype == bool
  return drawn


def codes(masks: np.ndarray) -> np.ndarray:
  """Returns one integer per combination, [C, L, M] -> [C]."""
  bits = masks.reshape(len(masks), -1).astype(np.int64)
  return bits @ (1 << np.arange(bits.shape[1], dtype=np.int64))


def members(
    task_support: supports.TaskSupport, params: supports.SplitParams, split: str
) -> tuple[np.ndarray, set[int]]:
  """Returns the combinations of a split, [C, L, M], and their codes.

  Draws on after the last one is found, to notice more than there should be;
  one of n is missed by n (log n + 20) draws with probability below e^-20.
  """
  size = task_support.count(params, split)
  num_draws = math.ceil(size * (math.log(size) + 20))
  found: np.ndarray | None = None
  seen = np.zeros(0, np.int64)
  for seed in range(math.ceil(num_draws / NUM_DRAWS)):
    drawn = draw(task_support, params, split, seed)
    drawn = drawn if found is None else np.concatenate([found, drawn])
    seen, first = np.unique(codes(drawn), return_index=True)
    found = drawn[first]
  assert found is not None and len(seen) == size
  return found, set(seen.tolist())


def every(num_modules: int, max_active: int, num_layers: int) -> np.ndarray:
  """Returns all combinations by brute force, [C, L, M]."""
  masks = [
      mask
      for mask in itertools.product([False, True], repeat=num_modules)
      if 1 <= sum(mask) <= max_active
  ]
  return np.array(list(itertools.product(masks, repeat=num_layers)))


def active(mask: np.ndarray) -> list[int]:
  """Returns the numbers of the active modules of a mask [M]."""
  return np.flatnonzero(mask).tolist()


def init(
    task_support: supports.TaskSupport, seed: int = 0
) -> supports.SplitParams:
  return task_support.init(jax.random.key(seed))


def sizes(task_support: supports.TaskSupport, *splits: str) -> tuple[int, ...]:
  """Returns how many combinations splits hold; the same for all seeds."""
  params = supports.SplitParams(
      jnp.zeros(8, jnp.uint32), jnp.zeros(4, jnp.int32)
  )
  return tuple(task_support.count(params, split) for split in splits)


def num_components(masks: np.ndarray) -> int:
  """How many components the graph of combinations has.

  Nodes are combinations; an edge joins two that share an active module of the
  same layer.
  """
  flat = masks.reshape(len(masks), -1).astype(int)
  adjacent = flat @ flat.T > 0
  unseen, components = set(range(len(masks))), 0
  while unseen:
    components += 1
    frontier = {unseen.pop()}
    while frontier:
      reached = set(np.flatnonzero(adjacent[list(frontier)].any(0)).tolist())
      frontier = reached & unseen
      unseen -= frontier
  return components

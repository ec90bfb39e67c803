"""Which answers does the context of an sRAVEN instance allow?

Source: Table A2 of Schug et al., "Attention as a Hypernetwork" (2025). An
answer is allowed if, for some order of the features in each column, each
feature follows some rule in all panels, the answer included. In their released
code an instance counts as ambiguous if an answer is allowed that differs in
*every* feature. We also count those where it differs in any. Their check of
'distribute three' is lenient: the three values may repeat, and so may the two
that the last row shows. It allows the value that is shown least, or the lowest.

Worked example: rows (3, 4, 7), (1, 4, 5) and (2, 5, ?) of a single feature
follow 'addition', and with F = 8 also 'subtraction', as 4 = -4: both 7 and 5
are allowed. With (2, 4, ?) in place of (2, 5, ?), 6 is the only answer.

  python -m modular_hyperteacher.studies.in_context.ambiguity

measures, for HY-16, how many instances are ambiguous. It needs no training,
takes seconds, and writes data/sraven_ambiguity.csv.
"""

from collections.abc import Callable
import functools
import itertools
import pathlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from modular_hyperteacher.cli import script
from modular_hyperteacher.figures.library import measured
from modular_hyperteacher.studies.in_context import sraven


class Ambiguous(NamedTuple):
  """Whether another answer is allowed, [N] bool each."""

  in_any_feature: np.ndarray
  in_every_feature: np.ndarray
  as_released: np.ndarray  # In every feature, by the lenient check.


CELL = ('task.num_features', 'task.num_values')
# A row per size, seed and metric.
MEASURED = measured.Table(
    pathlib.Path(__file__).parent / 'data' / 'sraven_ambiguity.csv',
    CELL,
    {'split': 'test'},
)
# Features and values: those of Table A2, and of the laptop's world.
SIZES = ((4, 4), (4, 8), (4, 16), (2, 8))
METRICS = Ambiguous._fields
SEEDS = (0, 1, 2, 3, 4)
_NUM_INSTANCES = 4096  # As published; of each seed.


def find(panels: np.ndarray, num_values: int) -> Ambiguous:
  """Searches all orders and rules of panels [N, 3 rows, 3 columns, K]."""
  strict, lenient = _allow(panels, num_values)
  return Ambiguous(*_search(panels, strict), _search(panels, lenient)[1])


def _search(
    panels: np.ndarray, allowed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Returns whether another answer is possible, in any and in every feature."""
  num_values = allowed.shape[-1]
  answer = panels[:, 2, 2, None, None, :, None]
  is_other = np.arange(num_values) != answer
  possible = np.asarray(allowed.any(-1))
  differs = np.asarray((allowed & is_other).any(-1))
  in_any = np.zeros(len(panels), bool)
  in_every = np.zeros(len(panels), bool)
  num_features = panels.shape[-1]
  orders = list(itertools.permutations(range(num_features)))
  for second, third in itertools.product(orders, repeat=2):
    # Which features of the three columns belong together.
    chosen = (slice(None), range(num_features), second, third)
    is_valid = possible[chosen].all(1)
    in_any |= is_valid & differs[chosen].any(1)
    in_every |= differs[chosen].all(1)
  return in_any, in_every


def _allow(
    panels: np.ndarray, num_values: int
) -> tuple[np.ndarray, np.ndarray]:
  """Returns which answers some rule allows, [N, K, K, K, F] bool, in two ways.

  Their indices are the features of the first, second and third column that are
  taken to belong together, and the answer. Those of the second array are by the
  lenient check.
  """
  a, b, c = np.broadcast_arrays(
      panels[:, :, 0, :, None, None],
      panels[:, :, 1, None, :, None],
      panels[:, :, 2, None, None, :],
  )
  values = np.arange(num_values)

  def allow(fits: np.ndarray, answer: np.ndarray) -> np.ndarray:
    return fits[..., None] & (answer[..., None] == values)

  allowed = np.zeros((*a[:, 0].shape, num_values), bool)
  for step in sraven.STEPS:
    steps = (b - a - step) % num_values == 0
    thirds = (b + step) % num_values
    fits = steps.all(1) & (c == thirds)[:, :2].all(1)
    allowed |= allow(fits, thirds[:, 2])
  for sign in (1, -1):
    thirds = (a + sign * b) % num_values
    allowed |= allow((c == thirds)[:, :2].all(1), thirds[:, 2])
  rows = np.sort(np.stack([a, b, c], -1)[:, :2], -1)
  three = rows[:, 0]
  is_given = np.stack([a, b], -1)[:, 2, ..., None] == three[..., None, :]
  fits = (three == rows[:, 1]).all(-1) & is_given.any(-1).all(-1)
  counts = is_given.sum(-2)
  left = np.take_along_axis(three, counts.argmin(-1)[..., None], -1)[..., 0]
  is_distinct = (np.diff(three) > 0).all(-1) & (counts.max(-1) == 1)
  return (
      allowed | allow(fits & is_distinct, left),
      allowed | allow(fits, left),
  )


def measure(num_features: int, num_values: int, seed: int) -> dict[str, float]:
  """Returns the shares of ambiguous instances.

  Multisets of K rules are drawn uniformly.
  """
  multisets = jnp.asarray(sraven.list_multisets(num_features))
  rule_key, panel_key = jax.random.split(jax.random.key(seed))
  rules = jax.random.choice(rule_key, multisets, (_NUM_INSTANCES,))
  keys = jax.random.split(panel_key, _NUM_INSTANCES)
  panels = np.asarray(_make_draw(num_values)(keys, rules))
  solutions = find(panels, num_values)
  return {name: float(x.mean()) for name, x in zip(METRICS, solutions)}


@functools.cache
def _make_draw(num_values: int) -> Callable[..., jax.Array]:
  """Returns `draw(keys, rules) -> panels`, compiled."""
  draw = functools.partial(sraven.draw_panels, num_values=num_values)
  return jax.jit(jax.vmap(draw))


def main() -> None:
  """Measures all of them."""
  frame = pd.DataFrame([
      {**dict(zip(CELL, size)), 'seed': seed, 'metric': name, 'value': value}
      for size in SIZES
      for seed in SEEDS
      for name, value in measure(*size, seed).items()
  ])
  MEASURED.write(frame, '%.6g')
  print(frame.groupby([*CELL, 'metric'])['value'].mean())


if __name__ == '__main__':
  script.run(main)

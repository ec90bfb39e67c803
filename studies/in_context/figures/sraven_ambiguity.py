"""Measures how many instances of sRAVEN are ambiguous, for HY-16.

  python -m studies.in_context.figures.sraven_ambiguity

Needs no training; takes seconds. Writes sraven_ambiguity.csv to the study's
data/.
"""

from collections.abc import Callable
import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from modular_hyperteacher import files
from modular_hyperteacher.cli import script
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.studies.in_context import ambiguity
from modular_hyperteacher.studies.in_context import sraven

PATH = pathlib.Path(__file__).parents[1] / 'data' / 'sraven_ambiguity.csv'
CELL = ('task.num_features', 'task.num_values')
# Features and values: those of Table A2, and of the laptop's world.
SIZES = ((4, 4), (4, 8), (4, 16), (2, 8))
METRICS = ambiguity.Ambiguous._fields
SEEDS = (0, 1, 2, 3, 4)
_NUM_INSTANCES = 4096  # As published; of each seed.


def measure(
    num_features: int, num_values: int, seed: int, number: int = _NUM_INSTANCES
) -> dict[str, float]:
  """Returns the shares of ambiguous instances; see `ambiguity`.

  Multisets of K rules are drawn uniformly.
  """
  multisets = jnp.asarray(sraven.list_multisets(num_features))
  rule_key, panel_key = jax.random.split(jax.random.key(seed))
  rules = jax.random.choice(rule_key, multisets, (number,))
  keys = jax.random.split(panel_key, number)
  panels = np.asarray(_make_draw(num_values)(keys, rules))
  solutions = ambiguity.find(panels, num_values)
  return {name: float(x.mean()) for name, x in zip(METRICS, solutions)}


@functools.cache
def _make_draw(num_values: int) -> Callable[..., jax.Array]:
  """Returns `draw(keys, rules) -> panels`, compiled."""
  draw = functools.partial(sraven.draw_panels, num_values=num_values)
  return jax.jit(jax.vmap(draw))


def load() -> pd.DataFrame:
  """Returns what was measured: a row per size, seed and metric."""
  return pd.read_csv(PATH)


def as_runs() -> pd.DataFrame:
  """Returns the measurements in the form of finished runs, for a claim."""
  table = load()
  name = table[CELL[0]].astype(str) + '-' + table[CELL[1]].astype(str)
  return data.as_runs(table, name, split='test')


def main() -> None:
  """Measures all of them."""
  frame = pd.DataFrame([
      {**dict(zip(CELL, size)), 'seed': seed, 'metric': name, 'value': value}
      for size in SIZES
      for seed in SEEDS
      for name, value in measure(*size, seed).items()
  ])
  files.write_atomically(PATH, frame.to_csv(index=False, float_format='%.6g'))
  print(frame.groupby([*CELL, 'metric'])['value'].mean())


if __name__ == '__main__':
  script.run(main)

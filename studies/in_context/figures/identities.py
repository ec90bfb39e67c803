"""Measures how exact two statements about attention are, for HY-1 and IC-10.

  python -m studies.in_context.figures.identities

Needs no training; takes seconds. Writes studies/in_context/data/identities.csv.
"""

import pathlib

import jax
import pandas as pd

from modular_hyperteacher import files
from modular_hyperteacher.cli import script
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.studies.in_context import identities

PATH = pathlib.Path(__file__).parents[1] / 'data' / 'identities.csv'
ATTENTION = ('softmax', 'linear')
CONSTRUCTION = 'construction'
CELL = ('identity',)
METRIC = 'relative_error'
_SEEDS = (0, 1, 2, 3, 4)


def measure(identity: str, seed: int) -> float:
  """Returns the largest error, relative to the largest output.

  The identity is a kind of attention, or `CONSTRUCTION`; the seed is that of
  parameters and tokens.
  """
  key = jax.random.key(seed)
  if identity == CONSTRUCTION:
    return identities.construction_error(key)
  return identities.hypernetwork_error(identity, key)


def load() -> pd.DataFrame:
  """Returns what was measured: a row per identity and seed."""
  return pd.read_csv(PATH)


def as_runs() -> pd.DataFrame:
  """Returns the measurements in the form of finished runs, for a claim."""
  table = load()
  return data.as_runs(table, table['identity'], split='test', metric=METRIC)


def main() -> None:
  """Measures all of them."""
  frame = pd.DataFrame([
      {'identity': identity, 'seed': seed, 'value': measure(identity, seed)}
      for identity in (*ATTENTION, CONSTRUCTION)
      for seed in _SEEDS
  ])
  files.write_atomically(PATH, frame.to_csv(index=False, float_format='%.3g'))
  print(frame.to_string(index=False))


if __name__ == '__main__':
  script.run(main)

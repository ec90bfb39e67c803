"""Measures the counterexamples, for Figure A1 and claim TH-2.

  python -m figures.paper.counterexamples

They are constructed, not trained. Measuring takes a minute and writes
figures/data/counterexamples.csv, which the figure reads.
"""

from typing import Any

import jax
import pandas as pd

from modular_hyperteacher import files
from modular_hyperteacher.analysis import counterexamples
from modular_hyperteacher.cli import script
from modular_hyperteacher.figures.library import data

PATH = data.BUNDLED / 'counterexamples.csv'
SEEDS = (0, 1, 2, 3, 4)


def measure(name: str, seed: int) -> list[dict[str, Any]]:
  """Returns the rows of one counterexample with one seed's vectors.

  Errors are squared, relative to the power of the targets: the largest on
  training tasks with the teacher's latent, the smallest on a held-out task
  with any latent.
  """
  example_key, train_key, ood_key = jax.random.split(jax.random.key(seed), 3)
  example = counterexamples.COUNTEREXAMPLES[name](example_key)
  train_error = counterexamples.largest_training_error(example, train_key)
  return [
      {
          'counterexample': name,
          'seed': seed,
          'ood_task': task,
          'train_error': train_error,
          'best_ood_error': counterexamples.best_ood_error(
              example, mask, ood_key
          ),
      }
      for task, mask in example.ood_masks.items()
  ]


def load() -> pd.DataFrame:
  """Returns what was measured: a row per counterexample, seed and task."""
  return pd.read_csv(PATH, dtype={'ood_task': str})


def as_runs() -> pd.DataFrame:
  """Returns the measurements in the form of finished runs, for a claim."""
  table = load().rename(columns={'best_ood_error': 'value'})
  name = table['counterexample'] + '-' + table['ood_task']
  return data.as_runs(table, name, split='ood', metric='relative_error')


def main() -> None:
  """Measures all of them."""
  rows = [
      row
      for name in counterexamples.COUNTEREXAMPLES
      for seed in SEEDS
      for row in measure(name, seed)
  ]
  frame = pd.DataFrame(rows)
  files.write_atomically(PATH, frame.to_csv(index=False))
  print(frame.to_string(index=False))


if __name__ == '__main__':
  script.run(main)

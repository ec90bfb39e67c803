"""Computes the reference lines of the in-context figures, in a minute.

  python -m figures.extensions.in_context_references

Needs no training. Writes figures/data/in_context_references.csv, which the
figures read.
"""

import pathlib

import jax
import pandas as pd

from figures import cli
from figures.library import reference
from modular_hyperteacher import randomness
from modular_hyperteacher.analysis import reference_lines
from modular_hyperteacher.experiments import build as experiments
from modular_hyperteacher.runs import run_folder

PATH = pathlib.Path(__file__).parents[1] / 'data' / 'in_context_references.csv'
EXPERIMENT = 'in_context'
SPLITS = ('test', 'ood')


def load() -> pd.DataFrame:
  """Returns a row per support, seed, split and predictor."""
  return pd.read_csv(PATH)


def main() -> None:
  """Computes the lines of all seeds of the laptop preset."""
  rows = []
  runs = {
      run.config['task']['task_support']: run
      for run in reference.described_runs(EXPERIMENT, 'laptop')
  }
  for support, run in runs.items():
    built = experiments.build(run.config, num_devices=1)
    for seed, drawn in zip(
        built.training.seeds, experiments.draw_tasks(built), strict=True
    ):
      key = randomness.stream(jax.random.key(seed), 'reference_lines')
      for split in SPLITS:
        found = reference_lines.measure(drawn.task_params, support, split, key)
        rows += [
            {
                'task_support': support,
                'seed': seed,
                'split': split,
                'predictor': name,
                'r2': value,
            }
            for name, value in found.items()
        ]
  frame = pd.DataFrame(rows)
  run_folder.write_atomically(
      PATH, frame.to_csv(index=False, float_format='%.4g')
  )
  print(frame.to_string(index=False))


if __name__ == '__main__':
  cli.run(main)

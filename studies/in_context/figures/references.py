"""Computes the reference lines of the in-context figures, in some minutes.

  python -m studies.in_context.figures.references

Needs no training. Writes in_context_references.csv and, for the hyperteacher,
in_context_hyperteacher_references.csv to the study's data/, for the figures.
"""

import pathlib

import jax
import pandas as pd

from modular_hyperteacher import files
from modular_hyperteacher import randomness
from modular_hyperteacher.cli import script
from modular_hyperteacher.experiments import build as experiments
from modular_hyperteacher.experiments import checked
from modular_hyperteacher.experiments import components
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.studies.in_context import reference_lines

_DATA = pathlib.Path(__file__).parents[1] / 'data'

EXPERIMENT = 'in_context'
HYPERTEACHER = 'in_context_hyperteacher'
# Experiment -> the score's column.
SCORES = {EXPERIMENT: 'r2', HYPERTEACHER: 'accuracy'}
SPLITS = ('test', 'ood')


def path(experiment: str) -> pathlib.Path:
  """Returns the file of an experiment's reference lines."""
  return _DATA / f'{experiment}_references.csv'


def load(experiment: str = EXPERIMENT) -> pd.DataFrame:
  """Returns a row per support, seed, split and predictor."""
  return pd.read_csv(path(experiment))


def measure(experiment: str) -> pd.DataFrame:
  """Computes the lines of all seeds that are bundled at laptop scale."""
  library = data.Library(data.BUNDLED / 'nothing')
  seeds = sorted(set(library.values(experiment, 'laptop')['seed']))
  rows = []
  runs = {
      run.config['task']['task_support']: run
      for run in reference.described_runs(experiment, 'laptop')
  }
  for support, run in runs.items():
    task = run.config['task']
    training = run.config['training'] | {'seeds': [int(seed) for seed in seeds]}
    built = experiments.build(run.config | {'training': training}, 1)
    for seed, drawn in zip(
        built.training.seeds, experiments.draw_tasks(built), strict=True
    ):
      params = drawn.task_params
      key = randomness.stream(jax.random.key(seed), 'reference_lines')
      for split in SPLITS:
        if task['name'] == 'modular_regression':
          measured = reference_lines.measure(params, support, split, key)
        else:
          block = task | reference_lines.EXAMPLES
          make_task = components.task_entry(block).make
          made = checked.call(make_task, 'task', block)
          measured = reference_lines.measure_accuracy(made, params, split, key)
        rows += [
            {
                'task_support': support,
                'seed': seed,
                'split': split,
                'predictor': name,
                SCORES[experiment]: value,
            }
            for name, value in measured.items()
        ]
  return pd.DataFrame(rows)


def main() -> None:
  """Computes the lines of both experiments."""
  for experiment in SCORES:
    frame = measure(experiment)
    files.write_atomically(
        path(experiment), frame.to_csv(index=False, float_format='%.4g')
    )
    print(frame.to_string(index=False))


if __name__ == '__main__':
  script.run(main)

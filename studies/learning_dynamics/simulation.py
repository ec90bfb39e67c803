"""Trains linear students, and stores them beside the closed form.

  python -m modular_hyperteacher.studies.learning_dynamics.simulation

Four supports of Table A9 and five seeds, each with a teacher of six orthonormal
modules and a student of six orthonormal modules, so that G is the identity. It
takes about two minutes of one core and writes data/linear.csv.gz, which figure
`ld_linear` and claim LD-1 read.
"""

import pathlib

import jax
import numpy as np
import pandas as pd

from modular_hyperteacher.cli import script
from modular_hyperteacher.figures.library import measured
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.studies.learning_dynamics import linear
from modular_hyperteacher.studies.learning_dynamics import supports
from modular_hyperteacher.studies.learning_dynamics import theory
from modular_hyperteacher.tasks.supports import families

EXPERIMENT = 'ld_linear'  # For LD-1; there is no config of this name.
CELL = ('latent_type', 'task_support')
RUNS = tuple(families.TABLE_A9[name] for name in ('DC1', 'DD1', 'CD1', 'CD3'))
SEEDS = (0, 1, 2, 3, 4)
NUM_MODULES, INPUT_DIM = families.NUM_MODULES, 16
_RATE, _STEPS, _EVERY = 0.02, 2500, 50


def measure(latent_type: str, task_support: str) -> pd.DataFrame:
  """Returns a row per seed, time and quantity, trained and in closed form.

  Columns latent_type, task_support, seed, time, quantity ('loss', or
  'direction 1' for the unlearned share of the direction of the largest
  eigenvalue, and so on), eigenvalue (NaN of the loss), trained, closed_form.
  """
  masks = supports.masks(task_support)
  keys = jax.vmap(jax.random.key)(np.array(SEEDS))
  teacher_keys, start_keys, task_keys = jax.vmap(
      lambda key: jax.random.split(key, 3), out_axes=1
  )(keys)
  shape = NUM_MODULES, INPUT_DIM
  draw = jax.vmap(lambda key: linear.draw_orthogonal(key, shape))
  teachers, starts = draw(teacher_keys), draw(start_keys)
  setting = linear.Setting(masks, latent_type, _RATE, _STEPS, _EVERY)
  trained = linear.train(task_keys, teachers, starts, setting)
  times = _RATE * _EVERY * np.arange(trained.shape[1])
  rows = []
  for seed, teacher, modules in zip(SEEDS, np.asarray(teachers), trained):
    drive = theory.drive(teacher, supports.moment(latent_type, task_support))
    values, directions = np.linalg.eigh(drive)
    values, directions = values[::-1], directions[:, ::-1][:, :NUM_MODULES]
    bases = theory.row_spaces(modules[0], drive, list(times), 1.0)
    both = [[theory.orthonormal_rows(w) for w in modules], bases]
    for index, time in enumerate(times):
      half = [
          [
              theory.loss(drive, b[index]),
              *theory.unlearned(directions, b[index]),
          ]
          for b in both
      ]
      for number, pair in enumerate(zip(*half)):
        name = f'direction {number}' if number else 'loss'
        eigenvalue = values[number - 1] if number else np.nan
        rows.append((seed, time, name, eigenvalue, *pair))
  columns = ['seed', 'time', 'quantity', 'eigenvalue', 'trained', 'closed_form']
  table = pd.DataFrame(rows, columns=columns)
  table.insert(0, 'task_support', task_support)
  table.insert(0, 'latent_type', latent_type)
  return table


def half_times(table: pd.DataFrame) -> pd.DataFrame:
  """Returns when the loss has halved: a row per run and seed.

  Columns latent_type, task_support, seed, trained and closed_form (times), and
  value, the absolute difference relative to the closed form.
  """
  rows = []
  loss = table[table['quantity'] == 'loss']
  for key, curve in loss.groupby([*CELL, 'seed'], sort=False):
    times = [
        stats.first_reach(
            curve['time'].to_numpy(), -values, -values[0] / 2, never=np.inf
        )
        for values in (
            curve['trained'].to_numpy(),
            curve['closed_form'].to_numpy(),
        )
    ]
    rows.append((*key, *times, abs(times[0] / times[1] - 1)))
  columns = [*CELL, 'seed', 'trained', 'closed_form', 'value']
  return pd.DataFrame(rows, columns=columns)


MEASURED = measured.Table(
    pathlib.Path(__file__).parent / 'data' / 'linear.csv.gz',
    CELL,
    {'split': 'test', 'metric': 'error of half time'},
    half_times,
)


def main() -> None:
  """Trains all students."""
  table = pd.concat([measure(*run) for run in RUNS])
  MEASURED.write(table, '%.4g')
  print(half_times(MEASURED.load()).to_string(index=False))


if __name__ == '__main__':
  script.run(main)

"""Figure A1: students that fit all training tasks and fail on a new one.

  python -m figures.paper.counterexamples

For each condition of Theorem 1, one student violates only that condition. They
are constructed, not trained. Measuring them takes a minute and writes
figures/data/counterexamples.csv, which the figure and claim TH-2 read. Bars are
the best error that any latent of the student reaches on a held-out task. On the
training tasks the error is zero up to rounding.
"""

from collections.abc import Hashable
from typing import Any

import jax
import pandas as pd

from modular_hyperteacher.analysis import counterexamples
from modular_hyperteacher.cli import script
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import measured
from modular_hyperteacher.figures.plotting import bars

TITLE = 'Figure A1: what if a condition of the theorem fails?'
# Counterexample -> label and colour.
_STUDENTS: dict[Hashable, tuple[str, str]] = {
    'wider_student': ('student wider<br>than its teacher', '#E69F00'),
    'disconnected_tasks': ('disconnected<br>families', '#D55E00'),
    'swapped_half': ('disconnected<br>halves', '#CC79A7'),
    'missing_module': ('a module never<br>trained on', '#0072B2'),
}


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of what it shows."""
  del library  # Constructed, not trained.
  table = MEASURED.load()
  task_bars = [
      bars.Bar(
          label=f'{label}<br>task {task}',
          colour=colour,
          seeds=rows.set_index('seed')['best_ood_error'],
      )
      for (name, task), rows in table.groupby(
          ['counterexample', 'ood_task'], sort=False
      )
      for label, colour in [_STUDENTS[name]]
  ]
  figure = bars.draw(
      {'': task_bars},
      y_title='best error on the new task, relative to target power',
      caption=[
          (
              'Constructions of our own, after Appendix A.3;'
              f' {table["seed"].nunique()} draws of the vectors. Largest error'
              f' on training tasks: {table["train_error"].max():.1e}.'
          ),
          (
              "Task: which modules are active. The student's latent is"
              ' optimised from 65 starts.'
          ),
      ],
  )
  return figure, table


# A row per counterexample, seed and task.
MEASURED = measured.Table(
    data.BUNDLED / 'counterexamples.csv',
    ('counterexample', 'ood_task'),
    {'split': 'ood', 'metric': 'relative_error'},
    lambda table: table.rename(columns={'best_ood_error': 'value'}),
    {'ood_task': str},
)
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


def main() -> None:
  """Measures all of them."""
  rows = [
      row
      for name in counterexamples.COUNTEREXAMPLES
      for seed in SEEDS
      for row in measure(name, seed)
  ]
  frame = pd.DataFrame(rows)
  MEASURED.write(frame)
  print(frame.to_string(index=False))


if __name__ == '__main__':
  script.run(main)

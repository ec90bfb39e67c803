"""Figure A1: students that fit all training tasks and fail on a new one.

For each condition of Theorem 1, one student violates only that condition. Bars
are the best error that any latent of the student reaches on a held-out task. On
the training tasks the error is zero up to rounding.
"""

from collections.abc import Hashable

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.paper import counterexamples
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
  table = counterexamples.load()
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
      title=TITLE,
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

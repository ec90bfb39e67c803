"""Names, cells and tables of the theory's figures."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.tasks.supports import families

SOLVER = 'model.inner.solver'
LATENTS = 'task.latent_type'
SUPPORT = 'task.task_support'
HIDDEN = 'model.hidden_dim'
MODULES = 'model.modules_per_teacher_module'
WEIGHT_DECAY = 'model.outer.weight_decay'

CONNECTED, DISCONNECTED = '#0072B2', '#D55E00'  # Okabe and Ito.
SOLVER_NAMES = {
    'levenberg_marquardt': 'converged inference',
    'adamw': 'Adam, as published',
}
# The label below a bar.
FAMILY_NAMES = {
    'singles': 'singles',
    'ring': 'ring',
    'triangles': 'two<br>triangles',
    'chained_triples': 'three<br>triples',
    'halves_triangles': 'halves,<br>triangles',
    'singles_ring': 'singles,<br>ring',
    'singles_triangles': 'singles,<br>triangles',
}

# Reported beside joint alignment on new combinations.
_METRICS = {
    **{
        name: ('ood', name)
        for name in (
            *('alignment', 'alignment_fit_train', 'alignment_per_module'),
            *('alignment_exact', 'identification_residual'),
            *('identification_residual_direct', 'latent_r2'),
        )
    },
    'train_relative_loss': ('test', 'pooled_relative_loss'),
    'ood_relative_loss': ('ood', 'pooled_relative_loss'),
}


def is_connected(task_support: str) -> bool:
  """Returns whether the families of this name are connected."""
  return families.is_connected(families.masks(families.FAMILIES[task_support]))


def colour(task_support: str) -> str:
  """Returns the colour of families of this name."""
  return CONNECTED if is_connected(task_support) else DISCONNECTED


def solvers(frame: pd.DataFrame) -> list[str]:
  """Returns the solvers that were run, the converged one first.

  Without any run, returns the published solver, so that the figure has a panel
  in which to name what is missing.
  """
  present = set(frame[SOLVER]) if SOLVER in frame else set()
  return [name for name in SOLVER_NAMES if name in present] or ['adamw']


def teacher_width(frame: pd.DataFrame) -> int:
  """Returns the number of hidden units of the teacher."""
  column = 'task.teacher_hidden_dim'
  return int(frame[column].iloc[0]) if column in frame else 16


def find_students(
    frame: pd.DataFrame,
    columns: Sequence[str],
    metrics: Mapping[str, tuple[str, str]],
) -> pd.DataFrame:
  """Returns a row per student of every cell, values of the columns.

  Columns are the ends of those of cells, 'seed', and those of metrics.
  """
  names = [column.rpartition('.')[2] for column in columns]
  parts = [pd.DataFrame(columns=[*names, 'seed', *metrics])]
  for cell in pick.distinct(frame, columns):
    measured = {
        name: pick.values(frame, cell, split, metric=metric)
        for name, (split, metric) in metrics.items()
    }
    students = pd.DataFrame(measured).rename_axis('seed').reset_index()
    parts.append(students.assign(**dict(zip(names, cell.values()))))
  return pd.concat(parts[1:] or parts, ignore_index=True)[[*parts[0]]]


def make_table(
    frame: pd.DataFrame, cells: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
  """Returns a row of metrics per cell, missing runs included."""
  return pd.DataFrame([_row(frame, cell) for cell in cells])


def _row(frame: pd.DataFrame, cell: Mapping[str, Any]) -> dict[str, Any]:
  row = {column.rpartition('.')[2]: value for column, value in cell.items()}
  for name, (split, metric) in _METRICS.items():
    estimate = stats.mean(pick.values(frame, cell, split, metric=metric))
    row |= estimate.columns(name)
    row['num_seeds'] = max(row.get('num_seeds', 0), estimate.num_seeds)
  runs = pick.rows(frame, cell)
  steps = runs.get('training.num_outer_steps', default=pd.Series())
  row['num_outer_steps'] = ', '.join(str(n) for n in pd.unique(steps))
  row['preset'] = ', '.join(runs['preset'].unique())
  return row

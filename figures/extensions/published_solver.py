"""Figure 2C's discrete families with the published solver, at its scale.

Two runs of the paper preset, stopped early because GPU time ran out.
`figures/data/published_solver.csv` holds their losses up to step 44,000 of
60,000 and the students' metrics at step 44,232; `published_solver.json` says
where they come from.
"""

import json

import pandas as pd

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.plotting import lines

TITLE = (
    'Figure 2C with the published solver: does Adam suffice at the published'
    ' scale?'
)
PATH = data.BUNDLED / 'published_solver.csv'
_FAMILIES = {
    'singles_ring': 'singles and ring (connected)',
    'singles_triangles': 'singles and triangles (disconnected)',
}
_PANELS = {'test': 'training combinations', 'ood': 'new combinations'}
_LOSS = 'pooled_relative_loss'
_METRICS = {
    **{
        name: ('ood', name)
        for name in (
            *('alignment', 'alignment_exact', 'alignment_fit_train'),
            *('identification_residual_direct', 'latent_r2'),
        )
    },
    'train_relative_loss': ('test', _LOSS),
    'ood_relative_loss': ('ood', _LOSS),
}


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of students at the last step."""
  del library  # These runs are unfinished, so they are not among the results.
  frame = pd.read_csv(PATH)
  panels = {
      title: [
          # A line per seed.
          lines.Line(
              name,
              theory_cells.colour(support),
              curve.pivot(index='step', columns='seed', values='value'),
          )
          for support, name in _FAMILIES.items()
          for _, curve in pick.rows(
              frame,
              {'task_support': support, 'split': split, 'metric': _LOSS},
          ).groupby('seed')
      ]
      for split, title in _PANELS.items()
  }
  where = json.loads(PATH.with_suffix('.json').read_text('utf-8'))
  table = make_table(frame, where['num_outer_steps'])
  steps = f'{frame["step"].max():,} of {where["num_outer_steps"]:,}'
  figure = lines.draw(
      panels,
      x_title='outer steps',
      y_title='loss / target power',
      y_type='log',
      markers=False,
      caption=[
          (
              'Published scale, a line per seed. Runs were stopped after'
              f' {steps} outer steps; {where["session"]["device_kind"]}.'
          ),
          'Module alignment at the end: '
          + '; '.join(
              f'{_FAMILIES[str(support)]} '
              + ', '.join(f'{value:.3f}' for value in rows['alignment'])
              for support, rows in table.groupby('task_support', sort=False)
          )
          + '.',
      ],
  )
  return figure, table


def make_table(frame: pd.DataFrame, num_outer_steps: int) -> pd.DataFrame:
  """Returns a row per student at its last step."""
  step = frame['step'].max()
  last = pick.rows(frame, {'step': step}).assign(kind='last')
  table = theory_cells.find_students(last, ('task_support',), _METRICS)
  table.insert(2, 'outer_step', step)
  table.insert(3, 'num_outer_steps', num_outer_steps)
  return table.assign(preset='paper')

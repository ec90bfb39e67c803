"""Beyond the paper: how the training tasks of Figure A3 grow with M.

A power law is fitted to Figure A3's runs, per model and K, at the highest
accuracy level that every seed reached at enough values of M. Leaving out the
seeds that never reached a level would bias the fit: they are the slow ones.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.extensions import scaling
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import fig_a3
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

TITLE = 'How do training tasks grow with the number of modules?'


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of fitted laws."""
  grid = cells.select(
      fig_a3.EXPERIMENT, library.curves(fig_a3.EXPERIMENT), fig_a3.CELL
  )
  table = fig_a3.make_table(grid)
  panels, laws, rows = {}, {}, []
  for max_active in grid.axis('max_active'):
    for model in grid.models:
      if not grid.find(name=model, max_active=max_active):
        continue
      rows_of_model = pick.rows(table, {'model': model, 'K': max_active})
      level, bounds = choose_level(rows_of_model)
      name = f'{style.MODEL_NAMES[model]}, K = {max_active}'
      if level:
        name += f', to {level:g}'
      panels[name] = [_line(model, bounds)]
      row = {
          'model': model,
          'K': max_active,
          'level': level,
          'preset': ', '.join(rows_of_model['preset'].unique()),
      }
      if level is None:
        rows.append(row | {'law': _sentence(None)})
      else:
        laws[name] = scaling.fit_power_law(bounds)
        rows.append(row | _describe(laws[name], bounds))
  figure = lines.draw(
      panels,
      title=TITLE,
      x_title='M, modules',
      y_title='training tasks (outer steps × tasks per step)',
      x_type='log',
      y_type='log',
      empty='the law is not determined',
      caption=grid.caption(
          *(f'{name}: {_sentence(laws.get(name))}' for name in panels),
          'Not in the paper. Tasks until OOD accuracy reaches the level in'
          ' the title, for values of M at which every seed reaches it.',
          'Points: mean and standard error over seeds. Dashed: power law,'
          ' with the 95% band of bootstrap draws.',
      ),
  )
  for index, name in enumerate(panels):
    if name in laws:
      model = rows[index]['model']
      for trace in _traces(laws[name], style.COLOURS[model]):
        figure.add_trace(trace, row=index // 4 + 1, col=index % 4 + 1)
  ticks = grid.axis('num_modules')
  figure.update_xaxes(tickvals=ticks, ticktext=[str(tick) for tick in ticks])
  tasks = [digit * 10**power for power in range(9) for digit in (1, 2, 3, 5)]
  figure.update_yaxes(tickvals=tasks, tickformat='~s')
  return figure, pd.DataFrame(rows)


def choose_level(table: pd.DataFrame) -> tuple[float | None, pd.DataFrame]:
  """Returns the highest level that determines a law, and the tasks to it.

  Args:
    table: rows of `fig_a3.make_table` of one model and K.

  Returns:
    The level, or None; and 'x' (M), 'seed', and the bounds 'low' and 'high'
    between which a curve reached the level. Only values of M at which every
    seed reached it, and after its first evaluation (else 'low' is unknown).
  """
  nothing = pd.DataFrame(columns=['x', 'seed', 'low', 'high'])
  for level in sorted(fig_a3.LEVELS, reverse=True):
    rows = pick.rows(table, {'level': level})
    usable = rows['tasks'].notna() & (rows['tasks_before'] > 0)
    kept = rows.loc[usable.groupby(rows['M']).transform('all')]
    bounds = pd.DataFrame({
        'x': kept['M'],
        'seed': kept['seed'],
        'low': kept['tasks_before'],
        'high': kept['tasks'],
    })
    if len(bounds) and not scaling.why_undetermined(bounds):
      return level, bounds
  return None, nothing


def _line(model: str, bounds: pd.DataFrame) -> lines.Line:
  middle = bounds[['low', 'high']].astype(float).mean(axis=1)
  return lines.Line(
      name=style.MODEL_NAMES[model],
      colour=style.COLOURS[model],
      seeds=bounds.assign(middle=middle).pivot_table(
          index='x', columns='seed', values='middle'
      ),
      bars=True,
  )


def _describe(law: scaling.Law, bounds: pd.DataFrame) -> dict[str, Any]:
  return {
      'exponent': law.exponent,
      'exponent_low': law.low,
      'exponent_high': law.high,
      'M': ', '.join(f'{m:g}' for m in sorted(set(bounds['x']))),
      'num_seeds': bounds['seed'].nunique(),
      'power_law_fits_better': law.power_law_fits_better,
      'law': _sentence(law),
  }


def _sentence(law: scaling.Law | None) -> str:
  """Returns the fitted law in words, with how certain it is."""
  if law is None:
    return (
        f'not determined: every seed must reach a level at {scaling.MIN_SIZES}'
        ' values of M'
    )
  text = f'tasks ∝ M^{law.exponent:.1f} ({law.low:.1f} to {law.high:.1f})'
  if not law.told_apart:
    return f'{text}; an exponential is not ruled out'
  form = 'a power law' if law.power_law_fits_better > 0.5 else 'an exponential'
  return f'{text}; {form} fits better'


def _traces(law: scaling.Law, colour: str) -> Iterator[go.Scatter]:
  x, curve = list(law.curve.index), law.curve
  yield lines.band(x, curve['low'], curve['high'], colour)
  yield go.Scatter(
      x=x,
      y=curve['fit'],
      mode='lines',
      line={'color': colour, 'dash': 'dash', 'width': 1.5},
      hovertemplate='power law at %{x:.1f}: %{y:.3g}<extra></extra>',
      showlegend=False,
  )

"""Beyond the paper: how the training tasks of Figure A3 grow with M.

A power law, log y = log c + exponent log x, is fitted to Figure A3's runs by
least squares, per model and K, at the highest accuracy level that every seed
reached at enough values of M. Leaving out the seeds that never reached a level
would bias the fit: they are the slow ones.

The band is from a bootstrap: seeds are resampled with replacement separately at
every x, since each x has teachers of its own. A value known only to lie between
two bounds is drawn uniformly between them. With few seeds the band is rough,
and more likely too narrow than too wide. The same draws give the share in which
an exponential, log y = a + b x, fits better.
"""

from collections.abc import Iterator
import itertools
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import fig_a3
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

_MIN_SIZES = 3  # Any two points lie on a line.
_MIN_SEEDS = 2
_NUM_DRAWS = 2000
_COVERAGE = 0.95
# Columns of `fig_a3.make_table`: between these, a curve reached the level.
BOUNDS = ['tasks_before', 'tasks']


class Law(NamedTuple):
  """A fitted power law."""

  exponent: float
  low: float  # Ends of the exponent's 95% interval.
  high: float
  curve: pd.DataFrame  # Index x; columns 'fit', 'low' and 'high' of y.
  power_law_fits_better: float  # Share of draws, against an exponential.

  @property
  def told_apart(self) -> bool:
    """Whether one of the two forms fits better in nearly all draws."""
    share = self.power_law_fits_better
    return max(share, 1 - share) >= _COVERAGE


def is_determined(rows: pd.DataFrame) -> bool:
  """Returns whether there are enough sizes with enough seeds to fit a law."""
  num_seeds = rows.groupby('M')['seed'].nunique()
  return bool((num_seeds >= _MIN_SEEDS).sum() >= _MIN_SIZES)


def fit_power_law(rows: pd.DataFrame) -> Law:
  """Returns the power law of values that lie between bounds.

  Args:
    rows: of `fig_a3.make_table`, at one level: 'M' is x, 'seed', and the
      positive bounds of y, 'tasks_before' and 'tasks'.

  Raises:
    ValueError: if there are too few.
  """
  if not is_determined(rows):
    raise ValueError(f'{len(rows)} measurements do not determine a power law')
  x = rows['M'].to_numpy(float)
  grid = np.geomspace(x.min(), x.max(), 41)
  middle = np.log(rows[BOUNDS].to_numpy(float).mean(1))
  slope, intercept = np.polyfit(np.log(x), middle, 1)
  drawn = _bootstrap(rows).T
  (slopes, intercepts), errors, *_ = np.polyfit(np.log(x), drawn, 1, full=True)
  _, exponential_errors, *_ = np.polyfit(x, drawn, 1, full=True)
  tails = [(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2]
  low, high = np.quantile(
      intercepts[:, None] + slopes[:, None] * np.log(grid)[None], tails, axis=0
  )
  curve = pd.DataFrame(
      np.exp(np.stack([intercept + slope * np.log(grid), low, high], axis=1)),
      index=grid,
      columns=['fit', 'low', 'high'],
  )
  low, high = np.quantile(slopes, tails).tolist()
  share = float((errors < exponential_errors).mean())
  return Law(float(slope), low, high, curve, share)


def _bootstrap(rows: pd.DataFrame) -> np.ndarray:
  """Returns log y of bootstrap draws of all measurements: [draws, N]."""
  rng = np.random.default_rng(0)
  drawn = np.empty((_NUM_DRAWS, len(rows)), int)
  for size in rows['M'].unique():
    at_size = np.flatnonzero(rows['M'] == size)
    drawn[:, at_size] = rng.choice(at_size, (_NUM_DRAWS, len(at_size)))
  low, high = (rows[end].to_numpy(float)[drawn] for end in BOUNDS)
  return np.log(rng.uniform(low, high))


TITLE = 'How do training tasks grow with the number of modules?'
EXPERIMENT = fig_a3.EXPERIMENT


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of fitted laws."""
  grid = cells.select(EXPERIMENT, library.curves(EXPERIMENT), fig_a3.CELL)
  table = fig_a3.make_table(grid)
  panels, laws, rows = {}, {}, []
  for k, model in itertools.product(grid.axis('max_active'), grid.models):
    if not grid.find(name=model, max_active=k):
      continue
    tasks = pick.rows(table, {'model': model, 'K': k})
    level, reached = choose_level(tasks)
    name = f'{style.MODEL_NAMES[model]}, K = {k}'
    if level:
      name += f', to {level:g}'
    middle = reached[BOUNDS].astype(float).mean(axis=1)
    points = reached.assign(middle=middle).pivot_table(
        index='M', columns='seed', values='middle'
    )
    panels[name] = [
        lines.Line(*style.model_style(model), seeds=points, bars=True)
    ]
    laws[name] = fit_power_law(reached) if level else None
    rows.append({
        'model': model,
        'K': k,
        'level': level,
        'preset': ', '.join(tasks['preset'].unique()),
        **_describe(laws[name], reached),
    })
  figure = lines.draw(
      panels,
      x_title='M, modules',
      y_title='training tasks (outer steps × tasks per step)',
      x_type='log',
      y_type='log',
      empty='the law is not determined',
      caption=grid.caption(
          *(f'{name}: {row["law"]}' for name, row in zip(panels, rows)),
          'Not in the paper. Tasks until OOD accuracy reaches the level in'
          ' the title, for values of M at which every seed reaches it.',
          'Points: mean and standard error over seeds. Dashed: power law,'
          ' with the 95% band of bootstrap draws.',
      ),
  )
  for index, (law, row) in enumerate(zip(laws.values(), rows)):
    for trace in _traces(law, style.COLOURS[row['model']]) if law else ():
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
    The level, or None; and its rows, of which the columns `BOUNDS` are those
    between which a curve reached the level. Only values of M at which every
    seed reached it, and after its first evaluation (else the lower is unknown).
  """
  for level in sorted(fig_a3.LEVELS, reverse=True):
    rows = pick.rows(table, {'level': level})
    usable = rows['tasks'].notna() & (rows['tasks_before'] > 0)
    kept = rows.loc[usable.groupby(rows['M']).transform('all')]
    if is_determined(kept):
      return level, kept
  return None, table.iloc[:0]


def _describe(law: Law | None, rows: pd.DataFrame) -> dict[str, Any]:
  """Returns columns of the table; 'law' says it in words, and how certain."""
  if law is None:
    return {
        'law': (
            'not determined: every seed must reach a level at'
            f' {_MIN_SIZES} values of M'
        )
    }
  text = f'tasks ∝ M^{law.exponent:.1f} ({law.low:.1f} to {law.high:.1f})'
  better = (
      'a power law' if law.power_law_fits_better > 0.5 else 'an exponential'
  )
  return {
      'exponent': law.exponent,
      'exponent_low': law.low,
      'exponent_high': law.high,
      'M': ', '.join(f'{m:g}' for m in sorted(set(rows['M']))),
      'num_seeds': rows['seed'].nunique(),
      'power_law_fits_better': law.power_law_fits_better,
      'law': (
          f'{text}; {better} fits better'
          if law.told_apart
          else f'{text}; an exponential is not ruled out'
      ),
  }


def _traces(law: Law, colour: str) -> Iterator[go.Scatter]:
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

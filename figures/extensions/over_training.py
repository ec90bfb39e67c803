"""The effect behind every trained claim over training, with 90% intervals.

Shows whether longer training is likely to decide a claim. The comparisons of
each claim are computed at evaluations during training.
"""

from collections.abc import Iterator, Sequence
import functools
import math

import numpy as np
import pandas as pd
from plotly import subplots
import plotly.graph_objects as go

from modular_hyperteacher.experiments import settings
from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

TITLE = 'Would longer training decide a claim?'
TITLE_PARTS = 'Do claims hold in longer runs, or for other tasks and students?'
_COLUMNS = ('claim', 'comparison', 'step', 'effect', 'low', 'high', 't')
_NUM_COLUMNS = 4
_CAPTION = (
    (
        'Colour: the comparison that decides the claim, as effect minus bound'
        ' in units of its metric, with the 90% interval over seeds.'
    ),
    (
        'Grey: the other comparisons. The claim holds if all intervals are'
        ' above zero.'
    ),
    (
        'Dotted: the published number of outer steps. A panel with one point:'
        ' the runs have no other value of the metric.'
    ),
)
_COLOURS = {
    verdicts.SUPPORTED: '#0072B2',
    verdicts.CONTRADICTED: '#D55E00',
    verdicts.UNDECIDED: '#E69F00',
}


def draw(
    claims: Sequence[verdicts.Claim],
    library: data.Library,
    *,
    caption: Sequence[str] = (),
) -> cells.Drawn:
  """Returns a panel per claim with runs, and the table of all comparisons.

  Effects are shown relative to their bounds, so that a comparison holds if its
  interval is above zero.
  """
  entries = {claim.id: verdicts.evaluate(claim, library) for claim in claims}
  shown = [
      claim
      for claim in claims
      if entries[claim.id]['effect'] is not None and published_steps(claim)
  ]
  table = pd.DataFrame(
      [row for claim in shown for row in make_rows(claim, library)],
      columns=[*_COLUMNS, 'preset'],
  )
  num_rows = max(math.ceil(len(shown) / _NUM_COLUMNS), 1)
  verdict = [entries[claim.id]['verdict'] for claim in shown]
  figure = subplots.make_subplots(
      rows=num_rows,
      cols=_NUM_COLUMNS,
      horizontal_spacing=0.06,
      vertical_spacing=0.35 / num_rows,
      subplot_titles=[f'{c.id}: {v}' for c, v in zip(shown, verdict)],
  )
  figure.update_annotations(font={'size': 12})
  if not shown:
    layout.name_empty(figure, 'no finished run', 1, 1)
  for index, claim in enumerate(shown):
    row, column = index // _NUM_COLUMNS + 1, index % _NUM_COLUMNS + 1
    rows = pick.rows(table, {'claim': claim.id})
    decisive = entries[claim.id]['comparison']
    for trace in _traces(rows, decisive, _COLOURS[verdict[index]]):
      figure.add_trace(trace, row=row, col=column)
  figure.update_layout(
      shapes=[
          layout.vertical_line(published_steps(claim), index, dash='dot')
          for index, claim in enumerate(shown, start=1)
      ]
  )
  figure.update_yaxes(zeroline=True, zerolinecolor=style.INK)
  figure.update_xaxes(type='log', dtick=1, exponentformat='power')
  figure.update_xaxes(title_text='outer steps', row=num_rows)
  marks = [(name, 'circle', colour, {}) for name, colour in _COLOURS.items()]
  layout.explain(figure, marks)
  height = 120 + 190 * num_rows
  caption = [*_CAPTION, *caption]
  layout.finish(figure, caption=caption, plot_height=height)
  return figure, table


def draw_parts(
    parts: Sequence[verdicts.Claim], library: data.Library
) -> cells.Drawn:
  """Returns the same of parts of claims, and says what each part is."""
  sentences = [
      f'{part.id}: {part.sentence}'
      for part in parts
      if verdicts.evaluate(part, library)['comparisons']
  ]
  return draw(parts, library, caption=sentences)


def make_rows(
    claim: verdicts.Claim, library: data.Library
) -> Iterator[tuple[str | float, ...]]:
  """Yields the values of _COLUMNS and the preset, at some evaluations."""
  for step, preset, made in at_steps(claim, library):
    for one in made:
      if one.estimate.num_seeds:
        values = one.estimate.value, *one.interval
        effect, low, high = (value - one.bound for value in values)
        yield claim.id, one.name, step, effect, low, high, one.t, preset


def is_one_point(claim: verdicts.Claim, library: data.Library) -> bool:
  """Returns whether a trained claim's effects are known for its end only."""
  if not published_steps(claim):
    return False
  return len({step for _, _, step, *_ in make_rows(claim, library)}) == 1


def at_steps(
    claim: verdicts.Claim, library: data.Library
) -> Iterator[tuple[int, str, Sequence[comparisons.Comparison]]]:
  """Yields (outer steps, preset, comparisons) of a claim, in order.

  At the last step these are the comparisons of the verdict.
  """
  entry = verdicts.evaluate(claim, library)
  if (preset := entry['preset']) in entry['scales']:
    library = library.at_scale(claim.experiment, preset)
  where = claim.experiment, claim.cell, library
  made = verdicts.compare(claim, library)
  runs = [s.runs for comparison in made for s in comparison.samples]
  if not runs:
    return
  facts = ['run_id', 'preset', 'training.num_outer_steps']
  # Other claims of this experiment may have runs of other lengths.
  used = pd.concat([r[facts] for r in runs])
  last = int(used['training.num_outer_steps'].max())
  preset = ' and '.join(used['preset'].unique())
  curves, _ = verdicts.select(data.Library.curves, *where)
  columns = ['step', 'training.evaluate_every']
  measured = curves[columns][curves['run_id'].isin(used['run_id'])]
  # At these, training also measures alignment, R2 and acting.
  analysed = {
      step
      for step, period in measured.drop_duplicates().astype(int).values.tolist()
      if 0 < step < last and settings.is_analysed(step, period)
  }
  for step in sorted(analysed):
    yield step, preset, list(claim.compare(_until(step, claim.read, *where)))
  yield last, preset, made


@functools.lru_cache(maxsize=256)
def _until(
    step: int,
    read: verdicts.Read,
    experiment: str,
    cell: tuple[str, ...],
    library: data.Library,
) -> pd.DataFrame:
  """Returns a claim's table as of an earlier step; not to be changed."""
  frame = read(library.until(experiment, step), experiment)
  return pick.select_conditions(frame, cell)[0]


def published_steps(claim: verdicts.Claim) -> int:
  """Returns the outer steps at the published scale; 0 without training."""
  runs = reference.described_runs(claim.experiment, 'paper')
  return max((r.config['training']['num_outer_steps'] for r in runs), default=0)


def _traces(
    rows: pd.DataFrame, decisive: str | None, colour: str
) -> Iterator[go.Scatter]:
  """Yields a line per comparison, the decisive one in its interval."""
  for name, line in rows[rows['comparison'] != decisive].groupby('comparison'):
    yield _line(line, str(name), style.MUTED, 0.8)
  line = rows[rows['comparison'] == decisive]
  # Four bytes a number: there are thousands on the page.
  low, high = (line[end].astype(np.float32) for end in ('low', 'high'))
  yield lines.band(list(line['step']), low, high, colour)
  whiskers = (line['high'] - line['effect']).astype(np.float32)
  yield _line(line, str(decisive), colour, 2.0).update(
      error_y={'array': whiskers}
  )


def _line(
    rows: pd.DataFrame, name: str, colour: str, width: float
) -> go.Scatter:
  return go.Scatter(
      x=rows['step'],
      y=rows['effect'].astype(np.float32),
      customdata=rows['t'].astype(np.float32),
      mode='lines+markers',
      marker={'size': 2 + 2 * width},
      line={'color': colour, 'width': width},
      showlegend=False,
      hovertemplate=(
          f'{name}<br>%{{x}} steps: %{{y:.3g}}, t = %{{customdata:.2f}}'
          '<extra></extra>'
      ),
  )

"""The paper's three main findings in one picture, as we find them.

Figure 2C with converged inference, and Figures 3B and 4E, which differ in
whether training combines all modules. ANIL and MAML are shown at the better of
their widths.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd
from plotly import subplots
import plotly.graph_objects as go

from modular_hyperteacher.figures.judging import students
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.paper import fig2c
from modular_hyperteacher.figures.paper import fig3b
from modular_hyperteacher.figures.paper import fig4e
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

TITLE = 'When do neural networks discover modules that recompose?'
EXPERIMENTS = (fig2c.EXPERIMENT, fig3b.EXPERIMENT, fig4e.EXPERIMENT)
# Families of Table A9 that differ in connectivity alone.
_FAMILIES = {
    ('discrete', 'connected'): 'singles_ring',
    ('discrete', 'disconnected'): 'singles_triangles',
    ('continuous', 'connected'): 'ring',
    ('continuous', 'disconnected'): 'triangles',
}
# Those of no model.
_THEORY_COLOURS = {'connected': '#007A59', 'disconnected': '#8C4B75'}
_SUPPORTS = {
    'random': 'every module<br>in training',
    'non_compositional': 'one module<br>left out',
}
_MODELS = (*style.MONOLITHIC, *style.HYPERNETWORKS)
# Panel -> title, y axis.
_PANELS = {
    'theory': ('Theory (Figure 2C)', 'alignment with the teacher'),
    fig3b.EXPERIMENT: (
        'Hyperteacher{} (3B)',
        'accuracy on new combinations',
    ),
    fig4e.EXPERIMENT: (
        'Goals in mazes (4E, 4F)',
        'accuracy on new combinations',
    ),
}


class _Bar(NamedTuple):
  """A bar and where it stands."""

  panel: str
  group: str  # Below the bar.
  name: str
  colour: str
  seeds: pd.Series
  preset: str

  @property
  def row(self) -> dict[str, Any]:
    """The bar in the table."""
    mean = stats.mean(self.seeds)
    return {
        'panel': self.panel,
        'group': self.group.replace('<br>', ' '),
        'model': self.name,
        **mean.columns('value'),
        'num_seeds': mean.num_seeds,
        'preset': self.preset,
    }


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of what it shows."""
  every = list(_bars(library))
  max_active = library.values(fig3b.EXPERIMENT).get('task.max_active', ())
  of_k = ''.join(f', K = {k:g}' for k in dict.fromkeys(max_active))
  titles = [title.format(of_k) for title, _ in _PANELS.values()]
  figure = subplots.make_subplots(
      1, len(_PANELS), subplot_titles=titles, horizontal_spacing=0.115
  )
  for column, (panel, (_, y_title)) in enumerate(_PANELS.items(), start=1):
    of_panel = [bar for bar in every if bar.panel == panel]
    _fill(figure, of_panel, column)
    figure.update_yaxes(title_text=y_title, col=column)
  figure.update_yaxes(range=(0, 1.02), dtick=0.25)
  scales = ' and '.join(dict.fromkeys(b.preset for b in every if b.preset))
  caption = [
      f'Ours, {scales or "no"} scale: means and standard errors over seeds;'
      ' circles are seeds.'
  ]
  missing = [
      f'{b.name} ({b.group.replace("<br>", " ")})'
      for b in every
      if b.seeds.empty
  ]
  if missing:
    caption.append(f'Not finished: {", ".join(missing)}.')
  layout.finish(figure, caption=caption)
  figure.update_layout(barmode='overlay')
  return figure, pd.DataFrame([bar.row for bar in every])


def _bars(library: data.Library) -> Iterator[_Bar]:
  grid = cells.read(library, fig2c.EXPERIMENT, fig2c.CELL)
  preset = ' and '.join(grid.frame['preset'].unique())
  for (latents, kind), support in _FAMILIES.items():
    cell = dict(zip(fig2c.CELL, ('levenberg_marquardt', latents, support)))
    look = f'{latents}<br>tasks', kind, _THEORY_COLOURS[kind]
    seeds = grid.values(cell, metric='alignment')
    yield _Bar('theory', *look, seeds, preset)
  for experiment in (fig3b.EXPERIMENT, fig4e.EXPERIMENT):
    frame = library.values(experiment)
    preset = ' and '.join(frame['preset'].unique())
    for support, group in _SUPPORTS.items():
      cell = {students.SUPPORT: support}
      shared = students.best_widths(frame, _MODELS, cell)
      shared = shared.reindex(columns=list(_MODELS))
      for model in _MODELS:
        look = style.MODEL_NAMES[model], style.COLOURS[model]
        yield _Bar(experiment, group, *look, shared[model].dropna(), preset)


def _fill(figure: go.Figure, of_panel: list[_Bar], column: int) -> None:
  """Draws the bars of a panel in groups, with a gap between two groups."""
  ticks: dict[str, list[float]] = {}
  for i, bar in enumerate(of_panel):
    x = i + len(ticks) - (bar.group in ticks)
    ticks.setdefault(bar.group, []).append(x)
    for trace in _traces(x, bar):
      trace.update(
          name=bar.name,
          legendgroup=bar.name,
          # Bars of the theory have their names in them.
          showlegend=column == 2
          and isinstance(trace, go.Bar)
          and of_panel[0].group == bar.group,
      )
      figure.add_trace(trace, row=1, col=column)
  figure.update_xaxes(
      tickvals=[sum(xs) / len(xs) for xs in ticks.values()],
      ticktext=list(ticks),
      showgrid=False,
      ticks='',
      tickangle=0,
      col=column,
  )


def _traces(x: float, bar: _Bar) -> Iterator[go.Bar | go.Scatter]:
  mean = stats.mean(bar.seeds)
  hover = f'{bar.name}, {bar.group.replace("<br>", " ")}'
  yield go.Bar(
      x=[x],
      y=[mean.value],
      width=0.8,
      marker={'color': bar.colour},
      error_y={'array': [mean.standard_error], 'color': style.INK},
      hovertemplate=f'{hover}: %{{y:.3f}}<extra></extra>',
      text=[bar.name if bar.panel == 'theory' else ''],
      textposition='inside',
      insidetextanchor='start',
      textangle=-90,
      textfont={'size': 16, 'color': 'white'},
  )
  yield go.Scatter(
      x=[x - 0.15] * len(bar.seeds),
      y=bar.seeds,
      mode='markers',
      marker={
          **{'size': 5, 'color': 'white'},
          'line': {'color': style.INK, 'width': 1},
      },
      hovertemplate=f'{hover}: %{{y:.3f}}<extra></extra>',
  )

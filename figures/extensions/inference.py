"""Beyond the paper: does size hurt, or inference that stops early?

Every point is a student: alignment on new combinations against training loss,
for two sizes and increasing inference effort.
"""

from collections.abc import Hashable, Iterator

import pandas as pd
from plotly import subplots
import plotly.graph_objects as go

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import theory_cells
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'inference'
TITLE = 'Do students find the modules if inference does not converge?'
_STEPS, _RATE = 'model.inner.num_steps', 'model.inner.learning_rate'
_START = 'model.inner.random_start'
CELL = (
    theory_cells.SOLVER,
    _STEPS,
    _RATE,
    _START,
    theory_cells.HIDDEN,
    theory_cells.MODULES,
)
# Solver -> name and colour. No run uses the published settings, and not all
# have converged.
_SOLVERS: dict[Hashable, tuple[str, str]] = {
    'levenberg_marquardt': ('Levenberg-Marquardt', '#0072B2'),
    'adamw': ('Adam', '#E69F00'),
}
# By modules, as a multiple of the teacher's.
_SYMBOLS: dict[Hashable, str] = {2: 'circle', 4: 'square', 8: 'diamond'}
_METRICS = {
    'train_loss': ('test', 'pooled_relative_loss'),
    'support_loss': ('test', 'support_loss_after'),
    'excess': ('test', 'inference_excess'),
    'ood_loss': ('ood', 'pooled_relative_loss'),
    'alignment': ('ood', 'alignment'),
}
_PANELS = {
    'train_loss': 'loss in training / target power',
    'support_loss': 'support loss after inference',
    'excess': 'loss that better inference removes',
}
# Negative excess is drawn here. It comes from rounding, or from inference on
# more examples than the fits that it is compared with.
_LEAST_EXCESS = 1e-9


def draw(library: data.Library) -> cells.Drawn:
  """Returns the figure and the table of all students."""
  grid = cells.read(library, EXPERIMENT, CELL)
  table = make_table(grid.frame)
  figure = subplots.make_subplots(
      rows=1, cols=len(_PANELS), shared_yaxes=True, horizontal_spacing=0.04
  )
  for column, (metric, x_title) in enumerate(_PANELS.items(), start=1):
    for trace in _traces(table, metric, in_legend=column == 1):
      figure.add_trace(trace, row=1, col=column)
    figure.update_xaxes(
        title_text=x_title, type='log', exponentformat='power', col=column
    )
    if table.empty:
      layout.name_missing(figure, 'no finished run', 0, column)
  figure.update_yaxes(title_text='joint module alignment, OOD', col=1)
  layout.finish(
      figure,
      title=TITLE,
      caption=grid.caption(
          'Discrete tasks, singles and ring.',
          "Circles: twice the teacher's size; squares: four times. Open"
          ' marks: inference from a random start.',
          'Right: relative loss minus that of latents inferred to'
          ' convergence, from many starts, on 64 examples; drawn at'
          f' {_LEAST_EXCESS:g} if that is no better.',
      ),
  )
  return figure, table


def make_table(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns a row per student."""
  columns = [column.rpartition('.')[2] for column in CELL]
  order = [*columns, 'seed', *_METRICS]
  if frame.empty:
    return pd.DataFrame(columns=order)
  rows = [
      theory_cells.find_students(frame, cell, _METRICS).assign(
          **dict(zip(columns, cell.values()))
      )
      for cell in pick.distinct(frame, CELL)
  ]
  return pd.concat(rows, ignore_index=True)[order]


def _traces(
    table: pd.DataFrame, metric: str, in_legend: bool
) -> Iterator[go.Scatter]:
  for (solver, modules), rows in table.groupby(
      ['solver', 'modules_per_teacher_module']
  ):
    solver_name, colour = _SOLVERS.get(solver, (str(solver), style.MUTED))
    symbol = _SYMBOLS.get(modules, 'x')
    # The legend shows the symbol of the first row.
    rows = rows.sort_values('random_start')
    effort = [
        f'{row.num_steps} steps'
        + (f' at {row.learning_rate:g}' if solver == 'adamw' else '')
        for row in rows.itertuples()
    ]
    yield go.Scatter(
        x=rows[metric].clip(lower=_LEAST_EXCESS),
        y=rows['alignment'],
        customdata=[*zip(effort, rows['seed'])],
        mode='markers',
        name=f'{solver_name}, {modules} times',
        showlegend=in_legend,
        legendgroup=f'{solver}{modules}',
        marker={
            'color': colour,
            'size': 9,
            'symbol': [
                f'{symbol}-open' if start else symbol
                for start in rows['random_start']
            ],
        },
        hovertemplate=(
            '%{customdata[0]}, seed %{customdata[1]}<br>%{x:.1e}: alignment'
            ' %{y:.3f}<extra></extra>'
        ),
    )

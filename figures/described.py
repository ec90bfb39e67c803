"""Figures that are described, not drawn: grids of bars, lines or heat maps."""

from collections.abc import Callable, Mapping, Sequence
import functools
import itertools
import string
import textwrap
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import heatmaps
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style


class Figure(NamedTuple):
  """One figure or table.

  Attributes:
    title: one line.
    experiments: those whose finished runs it reads; may be ().
    draw: library -> (figure, table of the plotted numbers). The figure is None
      for Tables A1, A10, A11 and A12, which are shown as tables.
    preset: the scale of the runs, if it is fixed.
  """

  title: str
  experiments: tuple[str, ...]
  draw: Callable[[data.Library], tuple[go.Figure | None, pd.DataFrame]]
  preset: str | None = None

  def make(
      self, library: data.Library
  ) -> tuple[go.Figure | None, pd.DataFrame]:
    """Returns the titled figure, and the table with the scale as 'preset'."""
    figure, table = self.draw(library)
    if figure is not None:
      wrapped = textwrap.wrap(self.title, 90)  # Plotly breaks no lines.
      figure.update_layout(title_text='<br>'.join(wrapped))
    if 'preset' not in table:
      presets = dict.fromkeys(
          preset
          for experiment in self.experiments
          for preset in library.values(experiment, self.preset)[
              'preset'
          ].unique()
      )
      scale = 'constructed' if not self.experiments else ' and '.join(presets)
      table = table.assign(preset=scale or 'no run')
    return figure, table


def _describe(
    plot: Callable[..., go.Figure],
    title: str,
    experiment: str,
    cell: tuple[str, ...],
    panels: Callable[[cells.Cells], Mapping[str, Any]],
    measures: (
        Mapping[str, tuple[str, str]] | Callable[[cells.Cells], pd.DataFrame]
    ),
    notes: Sequence[str | Callable[[cells.Cells], Sequence[str]]] = (),
    ticks: Sequence[int] | Callable[[cells.Cells], Sequence[int]] = (),
    adjust: Callable[[go.Figure, cells.Cells], Any] = lambda *_: None,
    read: Callable[..., pd.DataFrame] = data.Library.values,
    preset: str | None = None,
    keep: tuple[str, Sequence[Any]] | None = None,
    **options: Any,
) -> Figure:
  """Returns a figure of panels, with the table of what it shows.

  Args:
    plot: draws bars, lines or heat maps.
    title: one line.
    experiment: whose runs it shows.
    cell: the columns that distinguish cells.
    panels: runs -> what `plot` takes, such as `split` returns.
    measures: column of the table -> split, metric; or runs -> table.
    notes: lines below the figure, or functions of the runs that return some.
    ticks: the ticks of the x axis, or a function of the runs that returns them.
    adjust: changes the figure, given the runs.
    read: library, experiment -> runs; values at the last step, or curves.
    preset: the scale that is shown, in place of the one with most runs.
    keep: a column and values; only cells with one of these are shown.
    **options: of `plot`.
  """

  def draw(library: data.Library) -> cells.Drawn:
    shown = library.at_scale(experiment, preset) if preset else library
    grid = cells.select(experiment, read(shown, experiment), cell)
    grid = grid.keep(*keep) if keep else grid
    caption = grid.caption(
        *(x for n in notes for x in (n(grid) if callable(n) else [n]))
    )
    figure = plot(panels(grid), caption=caption, **options)
    if shown := ticks(grid) if callable(ticks) else ticks:
      figure.update_xaxes(tickvals=shown, ticktext=[f'{x:,}' for x in shown])
    adjust(figure, grid)
    if callable(measures):
      return figure, measures(grid)
    return figure, cells.make_table(grid, measures)

  return Figure(title, (experiment,), draw, preset)


bar_grid = functools.partial(_describe, bars.draw)
line_grid = functools.partial(_describe, lines.draw)
heat_grid = functools.partial(_describe, heatmaps.draw)

_NAMES = {'name': style.MODEL_NAMES, 'task_support': style.SUPPORT_NAMES}


def split(
    title: str,
    fill: Callable[[cells.Cells, list[cells.Cell]], Any],
    fastest: str = '',
) -> Callable[[cells.Cells], Mapping[str, Any]]:
  """Returns runs -> panels, one for each value that a title names.

  Args:
    title: has ends of names of columns in braces: '{name}, K = {max_active}'.
    fill: runs, cells of a panel -> what it holds.
    fastest: which of the names changes fastest; by default, the last one.
  """
  names = [name for _, name, *_ in string.Formatter().parse(title) if name]
  names.sort(key=lambda name: name == fastest)

  def make(grid: cells.Cells) -> Mapping[str, Any]:
    axes = [grid.models if n == 'name' else grid.axis(n) for n in names]
    panels = {}
    for values in itertools.product(*axes):
      point = dict(zip(names, values))
      shown = {n: _NAMES[n][v] if n in _NAMES else v for n, v in point.items()}
      if panel := grid.find(**point):
        panels[title.format(**shown)] = fill(grid, panel)
    return panels

  return make


def over(
    column: str, splits: Mapping[str, str]
) -> Callable[[cells.Cells, list[cells.Cell]], list[lines.Line]]:
  """Returns what fills a panel with accuracies over a column, by model.

  Args:
    column: the column of the x axis; 'step' for curves.
    splits: split -> dash. A single one needs no entry in the legend.
  """

  def seeds(
      grid: cells.Cells, line: list[cells.Cell], name: str
  ) -> pd.DataFrame:
    if column == 'step':
      return grid.over_training(line[0], name) if line else pd.DataFrame()
    ordered = sorted(line, key=lambda cell: cell[column])
    return lines.by_x({c[column]: grid.values(c, name) for c in ordered})

  def fill(grid: cells.Cells, panel: list[cells.Cell]) -> list[lines.Line]:
    return [
        model_line(
            model,
            seeds(grid, [c for c in panel if c['model.name'] == model], name),
            dash,
            style.SPLIT_NAMES[name] if len(splits) > 1 else '',
        )
        for model in grid.models
        for name, dash in splits.items()
    ]

  return fill


def model_line(
    model: str, seeds: pd.DataFrame, dash: str, dash_name: str
) -> lines.Line:
  """Returns a line with the name and the colour of a model."""
  name, colour = style.model_style(model)
  return lines.Line(name, colour, seeds, dash, dash_name)

"""Figures that are described, not drawn: grids of bars, lines or heat maps."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import itertools
import string
import types
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

Fill = Callable[[cells.Cells, Sequence[cells.Cell]], Any]


@dataclasses.dataclass(frozen=True)
class Grid:
  """A figure of panels, and the table of what it shows.

  Attributes:
    title: one line.
    experiment: whose runs it shows.
    cell: the columns that distinguish cells.
    plot: `bars.draw`, `lines.draw` or `heatmaps.draw`.
    panels: a title such as 'M = {num_modules}', which has a panel for each
      value that it names; or what `plot` takes, as a function of the runs.
    fill: what a panel holds, as a function of the runs and of its cells; only
      with a title.
    measures: column of the table -> split, metric; or the table, as a function
      of the runs.
    options: more arguments of `plot`.
    notes: lines below the figure, or functions of the runs that return some.
    ticks: of the x axis: numbers, or the end of the name of a column.
    curves: whether runs are read with metrics over training. Measures are of
      the last step.
  """

  title: str
  experiment: str
  cell: tuple[str, ...]
  plot: Callable[..., go.Figure]
  panels: str | Callable[[cells.Cells], Mapping[str, Any]]
  measures: (
      Mapping[str, tuple[str, str]] | Callable[[cells.Cells], pd.DataFrame]
  )
  options: Mapping[str, Any]
  fill: Fill | None = None
  notes: Sequence[str | Callable[[cells.Cells], Sequence[str]]] = ()
  ticks: str | Sequence[float] = ()
  curves: bool = False

  def draw(self, library: data.Library) -> cells.Drawn:
    """Returns the figure and the table."""
    found = self.read(library)
    figure = self.plot(
        self.fill_panels(found),
        title=self.title,
        caption=found.caption(*self._notes(found)),
        **self.options,
    )
    ticks = self.ticks
    if isinstance(ticks, str):
      ticks = found.axis(ticks)
    if ticks:
      figure.update_xaxes(tickvals=ticks, ticktext=[f'{x:,}' for x in ticks])
    if callable(self.measures):
      return figure, self.measures(found)
    if self.curves:
      found = cells.read(library, self.experiment, self.cell)
    return figure, cells.make_table(found, self.measures)

  def read(self, library: data.Library) -> cells.Cells:
    """Returns the runs that the panels show."""
    read = library.curves if self.curves else library.values
    return cells.select(self.experiment, read(self.experiment), self.cell)

  def fill_panels(self, found: cells.Cells) -> Mapping[str, Any]:
    """Returns what `plot` takes."""
    if callable(self.panels):
      return self.panels(found)
    if self.fill is None:
      raise ValueError(f'{self.title}: nothing fills the panels.')
    groups = split(found, self.panels)
    return {title: self.fill(found, group) for title, group in groups.items()}

  def _notes(self, found: cells.Cells) -> Sequence[str]:
    return [
        line
        for note in self.notes
        for line in (note(found) if callable(note) else [note])
    ]


def split(found: cells.Cells, title: str) -> dict[str, list[cells.Cell]]:
  """Returns title -> cells of a panel, for all values that a title names.

  Args:
    found: the runs.
    title: with ends of names of columns in braces: '{name}, K = {max_active}'.
      The last one changes fastest.
  """
  names = [name for _, name, *_ in string.Formatter().parse(title) if name]
  axes = [found.models if n == 'name' else found.axis(n) for n in names]
  return {
      title.format(
          **{n: _show(n, v) for n, v in zip(names, point)}
      ): found.find(**dict(zip(names, point)))
      for point in itertools.product(*axes)
  }


def _show(name: str, value: Any) -> Any:
  shown = {'name': style.MODEL_NAMES, 'task_support': style.SUPPORT_NAMES}
  return shown[name][value] if name in shown else value


def each(make: Callable[[cells.Cells, cells.Cell], Any]) -> Fill:
  """Returns what fills a panel with a bar for each of its cells."""
  return lambda found, group: [make(found, cell) for cell in group]


def over(
    column: str, splits: Mapping[str, str] = types.MappingProxyType({'ood': ''})
) -> Fill:
  """Returns what fills a panel with accuracies over a column, by model.

  Args:
    column: of the x axis.
    splits: split -> dash; '' if there is but one, which needs no name.
  """

  def fill(found: cells.Cells, group: Sequence[cells.Cell]) -> list[lines.Line]:
    ordered = sorted(group, key=lambda cell: cell[column])
    return [
        model_line(
            model,
            lines.by_x({c[column]: found.values(c, split) for c in own}),
            split if dash else '',
            dash or 'solid',
        )
        for model in style.sort_models(cell['model.name'] for cell in group)
        for own in [[c for c in ordered if c['model.name'] == model]]
        for split, dash in splits.items()
    ]

  return fill


def model_line(
    model: str, seeds: pd.DataFrame, split: str = '', dash: str = 'solid'
) -> lines.Line:
  """Returns a line in a model's colour, whose dash may mean a split."""
  return lines.Line(
      name=style.MODEL_NAMES[model],
      colour=style.COLOURS[model],
      seeds=seeds,
      dash=dash,
      dash_name=style.SPLIT_NAMES[split] if split else '',
  )

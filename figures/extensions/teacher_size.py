"""How large must a teacher be for its modules to be found?

R2 of decoding and OOD accuracy after equal training, for teachers with fewer
inputs, fewer hidden units or fewer examples than published.
"""

from collections.abc import Mapping

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.plotting import lines

_INPUTS, _UNITS = 'task.input_dim', 'task.teacher_hidden_dim'
_EXAMPLES = 'task.num_support'
_METRICS = {'R² of decoding': 'r2', 'OOD accuracy': 'accuracy'}
# From few inputs to as many as published.
_COLOURS = ('#E69F00', '#CC79A7', '#0072B2')


def _panels(grid: cells.Cells) -> Mapping[str, list[lines.Line]]:
  """Returns panels over units, with a line per input; and over examples."""
  every = max(grid.axis('num_support'))
  largest = {name: max(grid.axis(name)) for name in _names(_INPUTS, _UNITS)}
  over_units = {
      f'{title}, {every} examples': [
          _line(
              grid,
              grid.find(input_dim=inputs, num_support=every),
              _UNITS,
              metric,
              f'{inputs} inputs',
              colour,
          )
          for inputs, colour in zip(sorted(grid.axis('input_dim')), _COLOURS)
      ]
      for title, metric in _METRICS.items()
  }
  over_examples = {
      f'{title}, {largest["teacher_hidden_dim"]} units': [
          _line(
              grid,
              grid.find(**largest),
              _EXAMPLES,
              metric,
              f'{largest["input_dim"]} inputs',
              _COLOURS[-1],
          )
      ]
      for title, metric in _METRICS.items()
  }
  return over_units | over_examples


def _names(*columns: str) -> list[str]:
  return [column.rpartition('.')[2] for column in columns]


def _line(
    grid: cells.Cells,
    of_line: list[cells.Cell],
    column: str,
    metric: str,
    name: str,
    colour: str,
) -> lines.Line:
  ordered = sorted(of_line, key=lambda cell: cell[column])
  values = {c[column]: grid.values(c, metric=metric) for c in ordered}
  return lines.Line(name, colour, lines.by_x(values))


FIGURE = described.line_grid(
    title='How large must a teacher be for its modules to be found?',
    experiment='teacher_size',
    cell=(_INPUTS, _UNITS, _EXAMPLES),
    panels=_panels,
    measures={
        'r2': ('ood', 'r2'),
        'ood_accuracy': ('ood', 'accuracy'),
        'test_accuracy': ('test', 'accuracy'),
    },
    notes=(
        (
            'Linear hypernetwork, 64 wide, 16 tasks per step; two generated'
            ' layers. Published: 16 inputs, 32 units, 256 examples.'
        ),
    ),
    x_title='hidden units of the teacher (above), examples (below)',
    y_title='mean over OOD tasks',
    num_columns=2,
)

"""What makes twenty extra directions hard (Lake 2019, Section 4.5).

Each bar is a run of `scan_around_right.py` with twenty extra directions; all
but the first take one setting from the other scale.
"""

from collections.abc import Mapping
from typing import Any

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.studies.meta_seq2seq.configs import scan_directions
from modular_hyperteacher.studies.meta_seq2seq.figures import cells as networks

_CELL = tuple(paths[0] for paths in scan_directions.CHANGES.values())
_PANELS = {
    'New commands with "around right"': 'ood',
    'Fresh training episodes': 'test',
}


def _bars(grid: cells.Cells) -> dict[str, list[bars.Bar]]:
  published = reference.published_accuracy(
      'scan_around_right',
      networks.META.fields
      | {networks.MEANINGS: 'extended', networks.EXTRA: 20},
      'ood',
  )
  return {
      title: [
          grid.bar(
              cell,
              _name_change(cell, grid.cells[0]),
              networks.META.colour,
              split=split,
              beside=published if split == 'ood' else None,
          )
          for cell in grid.cells
      ]
      for title, split in _PANELS.items()
  }


def _name_change(cell: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
  """Returns what distinguishes a run from the first: 'width 200'."""
  changed = [
      f'{style.column_name(path)}<br>{cell[path]:g}'
      for path in _CELL
      if cell[path] != usual[path]
  ]
  return ', '.join(changed) or 'as in the<br>preset'


FIGURE = described.bar_grid(
    title='SCAN "around right": what makes twenty extra directions hard?',
    experiment='scan_directions',
    cell=_CELL,
    panels=_bars,
    measures={split: (split, 'accuracy') for split in _PANELS.values()},
    y_title=networks.ACCURACY,
    y_range=(0, 1),
    beside_name='published, whisker: standard deviation',
)._replace(experiments=('scan_directions', 'scan_around_right'))

"""Networks and captions of the figures on Lake (2019)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data

# The fields in which runs differ.
MODEL = 'model.name'
LOSS = 'model.outer.support_loss'
ATTENTION = 'model.use_decoder_attention'
MEANINGS = 'task.meanings'
EXTRA = 'task.num_extra'
CELL = (MODEL, LOSS, ATTENTION, MEANINGS, EXTRA)
ACCURACY = 'test rows right from first to last symbol (fraction)'


class Network(NamedTuple):
  """A network of the paper."""

  name: str  # In the tables.
  colour: str
  fields: dict[str, Any]  # By path in its config.


META = Network(
    'meta seq2seq',
    '#0072B2',
    {MODEL: 'meta_seq2seq', LOSS: True, ATTENTION: True},
)
NO_SUPPORT_LOSS = Network(
    'without support loss', '#56B4E9', {**META.fields, LOSS: False}
)
NO_ATTENTION = Network(
    'without decoder attention', '#CC79A7', {**META.fields, ATTENTION: False}
)
STANDARD = Network(
    'standard seq2seq',
    '#D55E00',
    {MODEL: 'seq2seq', LOSS: False, ATTENTION: None},
)


class Trained(NamedTuple):
  """A network and its training tasks."""

  experiment: str
  network: Network
  meanings: str | None = None
  num_extra: int | None = None

  @property
  def cell(self) -> dict[str, Any]:
    """Column -> value."""
    return {
        **self.network.fields,
        MEANINGS: self.meanings,
        EXTRA: self.num_extra,
    }


WORDS = Trained('scan_me', META)
_META_NETWORKS = (META, NO_SUPPORT_LOSS, NO_ATTENTION)
# What the paper compares: meta seq2seq first, the standard network last.
PERMUTED = (
    *(Trained('scan_add_jump', n, 'permuted', 0) for n in _META_NETWORKS),
    Trained('scan_add_jump', STANDARD, 'fixed', 0),
)
MORE_VERBS = (
    *(Trained('scan_add_jump', n, 'extended', 20) for n in _META_NETWORKS),
    Trained('scan_add_jump', STANDARD, 'aligned', 20),
)
AROUND_RIGHT = (
    Trained('scan_around_right', META, 'extended', 2),
    Trained('scan_around_right', STANDARD, 'fixed', 0),
)
MORE_DIRECTIONS = AROUND_RIGHT[0]._replace(num_extra=20)
LONGER = (
    Trained('scan_length', META, 'extended', 20),
    Trained('scan_length', STANDARD, 'fixed', 0),
)


def read(library: data.Library, experiment: str) -> cells.Cells:
  """Returns the runs of an experiment; below the published scale, a note."""
  grid = cells.read(library, experiment, CELL)
  frame = grid.frame
  if frame.empty or frame['published_scale'].all():
    return grid
  note = 'Compare directions, not values.'
  if 'task.max_actions' in frame:
    numbers = sorted(frame['task.max_actions'].dropna().unique())
    most = ' or '.join(str(int(number)) for number in numbers)
    note = f'Commands of at most {most} actions. {note}'
  return grid._replace(notes=(note,))


def caption(read_: Mapping[str, cells.Cells]) -> list[str]:
  """Returns lines on the runs of a figure's experiments, by their names."""
  return [
      f'{experiment}: {line.removeprefix("Ours: ")}'
      for experiment, grid in read_.items()
      for line in grid.caption()
  ]

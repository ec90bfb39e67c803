"""Claims about preferences and goals: Section 4.2 and 4.3, Figure 4."""

from collections.abc import Iterator
import functools
import itertools

import pandas as pd

from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import students
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.paper import student_size
from modular_hyperteacher.figures.plotting import style

# A loss may rise by this fraction and still count as not raised.
_RAISED = 0.1
# Accuracies that differ by less than this count as stable.
_UNSTABLE = 0.05


def _wider_gap(frame: pd.DataFrame) -> comparisons.Comparisons:
  """Compares the gap, OOD loss minus loss on seen tasks, between supports.

  The gap corrects for seen tasks that differ in difficulty between supports.
  """
  loss = functools.partial(comparisons.sample, frame, metric='loss')
  for model in style.HYPERNETWORKS:
    for student in students.widths(
        frame, model, supports=model_bars.COMPOSITIONAL
    ):
      with_each = [
          {**student, students.SUPPORT: s} for s in model_bars.COMPOSITIONAL
      ]
      gap, wider = (
          loss(cell, 'ood') - loss(cell, 'test') for cell in with_each
      )
      yield (wider - gap).named(
          f'gap of {style.cell_name(student)} with non-compositional support -'
          ' with compositional'
      ) > 0


def _falls(
    frame: pd.DataFrame, metric: str = 'accuracy'
) -> Iterator[tuple[str, list[comparisons.Sample]]]:
  """Yields a name, and samples: modular on both supports, then monolithic."""
  for pair in students.pairs(frame, supports=model_bars.COMPOSITIONAL):
    names = ' - of '.join(style.cell_name(model) for model in pair)
    yield f'fall of {names} (ood, {metric})', [
        comparisons.sample(frame, {**model, students.SUPPORT: s}, metric=metric)
        for model in pair
        for s in model_bars.COMPOSITIONAL
    ]


def _modular_fall_more(frame: pd.DataFrame) -> comparisons.Comparisons:
  """The fall of each hypernetwork minus that of each monolithic model."""
  for name, (modular, without, other, other_without) in _falls(frame):
    fall = (modular - without) - (other - other_without)
    yield fall.named(name) > 0


def _whole_demonstrations(frame: pd.DataFrame) -> comparisons.Comparisons:
  """Uses relative falls: an accuracy of 2% can fall by at most 2 points."""
  metric = 'accuracy_all'
  yield from students.modular_are_better(frame, metric)
  for name, (modular, without, other, other_without) in _falls(frame, metric):
    # A seed without any whole demonstration has no share to lose: not finite.
    kept = -(without / modular) + other_without / other
    yield kept.named(f'relative {name}') > 0


def _loss_is_not_raised(frame: pd.DataFrame) -> comparisons.Comparisons:
  """Compares every size with all that are no smaller in width and modules."""
  loss = functools.partial(comparisons.sample, frame, metric='loss')
  for pair in _pairs_of_sizes(frame):
    sizes = map(student_size.size, pair)
    if all(few <= many for few, many in zip(*sizes)):
      small, large = map(loss, pair)
      yield (1 + _RAISED) * small > large


def _accuracy_is_stable(frame: pd.DataFrame) -> comparisons.Comparisons:
  """Compares every size with every other."""
  return comparisons.better(frame, _pairs_of_sizes(frame), bound=-_UNSTABLE)


def _pairs_of_sizes(
    frame: pd.DataFrame,
) -> Iterator[tuple[cells.Cell, cells.Cell]]:
  """Yields the ordered pairs of sizes of a model, at their best rates."""
  grid = cells.of(frame, student_size.CELL_GRIDWORLDS)
  for model in style.HYPERNETWORKS:
    yield from itertools.permutations(student_size.best_rates(grid, model), 2)


CLAIMS = (
    verdicts.of_hypernetworks(
        '4B',
        'Preferences: OOD loss is lower with connected than with'
        ' disconnected support (both hypernetworks).',
        'fig4b',
        functools.partial(
            students.over_supports,
            higher='disconnected',
            lower='connected',
            metric='loss',
        ),
        cell=model_bars.CELL,
    ),
    verdicts.Claim(
        '4C-1',
        'Preferences: both hypernetworks have a lower OOD loss than both'
        ' ANIL and MAML.',
        'fig4c',
        functools.partial(students.modular_are_better, metric='loss'),
        cell=model_bars.CELL,
    ),
    verdicts.of_hypernetworks(
        '4C-2',
        'Preferences: holding one out widens the gap between OOD loss and'
        ' that on seen tasks (both hypernetworks).',
        'fig4c',
        _wider_gap,
        cell=model_bars.CELL,
    ),
    verdicts.Claim(
        '4E',
        'Goals: both hypernetworks have a higher OOD accuracy than both'
        ' ANIL and MAML.',
        'fig4e',
        students.modular_are_better,
        cell=model_bars.CELL,
    ),
    verdicts.Claim(
        '4F',
        'Goals: holding a quadrant out costs both hypernetworks more OOD'
        ' accuracy than ANIL and MAML.',
        'fig4f',
        _modular_fall_more,
        experiment='fig4e',
        cell=model_bars.CELL,
    ),
    verdicts.of_hypernetworks(
        'A8',
        'Preferences: OOD loss of larger hypernetworks is higher by less'
        f' than {_RAISED:.0%}.',
        'fig_a8',
        _loss_is_not_raised,
        cell=student_size.CELL_GRIDWORLDS,
    ),
    verdicts.Claim(
        'A9',
        'Goals: 4E and 4F hold for the share of demonstrations without a'
        ' mistake, 4F relative to this share.',
        'fig_a9',
        _whole_demonstrations,
        experiment='fig4e',
        cell=model_bars.CELL,
    ),
    verdicts.of_hypernetworks(
        'A10',
        'Goals: OOD accuracy of both hypernetworks changes by less than'
        f' {_UNSTABLE:g} with student size.',
        'fig_a10',
        _accuracy_is_stable,
        cell=student_size.CELL_GRIDWORLDS,
    ),
)

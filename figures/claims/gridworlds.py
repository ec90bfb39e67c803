"""Claims about preferences and goals: Section 4.2 and 4.3, Figure 4."""

from collections.abc import Mapping, Sequence
import functools
import itertools

import pandas as pd

from figures.claims import verdicts
from figures.library import cells
from figures.paper import fig3f
from figures.paper import fig_a8
from figures.paper import model_bars
from figures.plotting import stats
from figures.plotting import style

# A loss that is higher by at most this share does not count as raised.
_RAISED = 0.1
# Accuracies that differ by less count as stable.
_UNSTABLE = 0.05

_PAIRS = tuple(itertools.product(style.HYPERNETWORKS, style.MONOLITHIC))


def _on(
    frame: pd.DataFrame, model: str, support: str, metric: str
) -> verdicts.Sample:
  return verdicts.sample(frame, model_bars.cell(model, support), metric=metric)


def _loss_is_higher(
    frame: pd.DataFrame, higher: str, lower: str, times: float = 1
) -> list[verdicts.Effect]:
  """The hypernetworks' loss with one support minus that with the other."""
  effects = []
  for model in style.HYPERNETWORKS:
    samples = [_on(frame, model, s, 'loss') for s in (higher, lower)]
    factor = f'{times:g} × ' if times > 1 else ''
    name = f'{samples[0].name} - {factor}{samples[1].name}'
    effects.append(verdicts.between(name, samples, (1, -times)))
  return effects


def _modular_lose_less(frame: pd.DataFrame) -> list[verdicts.Effect]:
  return [
      verdicts.difference(
          _on(frame, monolithic, 'random', 'loss'),
          _on(frame, modular, 'random', 'loss'),
      )
      for modular, monolithic in _PAIRS
  ]


def _modular_are_better(
    frame: pd.DataFrame, metric: str
) -> list[verdicts.Effect]:
  return [
      verdicts.difference(
          _on(frame, modular, 'random', metric),
          _on(frame, monolithic, 'random', metric),
      )
      for modular, monolithic in _PAIRS
  ]


def _modular_fall_more(
    frame: pd.DataFrame, metric: str
) -> list[verdicts.Effect]:
  """The fall of each hypernetwork minus that of each monolithic model."""
  return [
      verdicts.between(
          f'fall of {style.MODEL_NAMES[modular]} -'
          f' of {style.MODEL_NAMES[monolithic]} (ood, {metric})',
          [
              _on(frame, model, support, metric)
              for model in (modular, monolithic)
              for support in ('random', 'non_compositional')
          ],
          (1, -1, -1, 1),
      )
      for modular, monolithic in _PAIRS
  ]


def _better_and_fall_more(
    frame: pd.DataFrame, metric: str
) -> list[verdicts.Effect]:
  return [
      *_modular_are_better(frame, metric),
      *_modular_fall_more(frame, metric),
  ]


def _loss_is_not_raised(frame: pd.DataFrame) -> list[verdicts.Effect]:
  """Every size against every other that is at least as large in both ways."""
  effects = []
  for small, large in _growing(_best_of_sizes(frame, 'fig_a8')):
    samples = [
        verdicts.sample(frame, cell, metric='loss') for cell in (small, large)
    ]
    name = f'{1 + _RAISED:g} × {samples[0].name} - {samples[1].name}'
    effects.append(verdicts.between(name, samples, (1 + _RAISED, -1)))
  return effects


def _best_of_sizes(
    frame: pd.DataFrame, experiment: str
) -> dict[str, list[cells.Cell]]:
  """Returns model -> its best cell of every size, smaller sizes first."""
  found = cells.select(experiment, frame, fig_a8.CELL)
  return {
      model: fig3f.best_rates(found, model, fig_a8.SIZE)
      for model in style.HYPERNETWORKS
  }


def _growing(
    by_model: Mapping[str, Sequence[cells.Cell]],
) -> list[tuple[cells.Cell, cells.Cell]]:
  """Returns (smaller, larger) pairs; neither width nor modules may shrink."""
  return [
      (small, large)
      for sizes in by_model.values()
      for small, large in itertools.permutations(sizes, 2)
      if all(small[column] <= large[column] for column in fig_a8.SIZE)
  ]


def _accuracy_is_stable(frame: pd.DataFrame) -> list[verdicts.Effect]:
  """The size with the lowest mean against that with the highest."""
  effects = []
  for sizes in _best_of_sizes(frame, 'fig_a10').values():
    samples = [verdicts.sample(frame, cell) for cell in sizes]
    if len(samples) < 2:
      continue
    ordered = sorted(samples, key=lambda s: stats.mean(s.values).value)
    gap = verdicts.difference(ordered[0], ordered[-1], bound=-_UNSTABLE)
    # With all samples, so that the verdict is NOT RUN if one is missing.
    effects.append(gap._replace(samples=tuple(samples)))
  return effects


def _claim(
    id_: str,
    figure: str,
    experiment: str,
    decide: verdicts.Decide,
    sentence: str,
    cell: tuple[str, ...] = model_bars.CELL,
) -> verdicts.Claim:
  return verdicts.Claim(
      id=id_,
      sentence=sentence,
      artefact=f'Figure {id_.partition("-")[0]}',
      experiment=experiment,
      figure=figure,
      cell=cell,
      decide=decide,
      models=style.HYPERNETWORKS,
  )


CLAIMS = (
    _claim(
        '4B',
        'fig4b',
        'fig4b',
        functools.partial(
            _loss_is_higher, higher='disconnected', lower='connected'
        ),
        'Preferences: OOD loss is lower with connected than with disconnected'
        ' support, for both hypernetworks.',
    ),
    _claim(
        '4C-1',
        'fig4c',
        'fig4c',
        _modular_lose_less,
        'Preferences, compositional support: OOD loss of both hypernetworks is'
        ' lower than that of both monolithic models.',
    ),
    _claim(
        '4C-2',
        'fig4c',
        'fig4c',
        functools.partial(
            _loss_is_higher,
            higher='non_compositional',
            lower='random',
            times=1 + _RAISED,
        ),
        'Preferences: holding one preference out (non-compositional support)'
        ' raises the OOD loss of both hypernetworks markedly'
        f' (by {_RAISED:.0%}).',
    ),
    _claim(
        '4E',
        'fig4e',
        'fig4e',
        functools.partial(_modular_are_better, metric='accuracy'),
        'Goals, compositional support: OOD accuracy of both hypernetworks is'
        ' higher than that of both monolithic models.',
    ),
    _claim(
        '4F',
        'fig4f',
        'fig4e',
        functools.partial(_modular_fall_more, metric='accuracy'),
        'Goals: non-compositional support costs both hypernetworks more OOD'
        ' accuracy than either monolithic model.',
    ),
    _claim(
        'A8',
        'fig_a8',
        'fig_a8',
        _loss_is_not_raised,
        'Preferences: more hidden units and modules do not raise the OOD loss'
        f' of either hypernetwork (by {_RAISED:.0%}).',
        fig_a8.CELL,
    ),
    _claim(
        'A9',
        'fig_a9',
        'fig4e',
        functools.partial(_better_and_fall_more, metric='accuracy_all'),
        'Goals: 4E and 4F hold as well for the fraction of demonstrations that'
        ' are predicted without a mistake.',
    ),
    _claim(
        'A10',
        'fig_a10',
        'fig_a10',
        _accuracy_is_stable,
        'Goals: OOD accuracy of both hypernetworks is stable over hidden units'
        f' and modules (differs by less than {_UNSTABLE:g}).',
        fig_a8.CELL,
    ),
)

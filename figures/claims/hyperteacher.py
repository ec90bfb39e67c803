"""Claims about the hyperteacher: Section 4.1 and Figure 3."""

import itertools

import pandas as pd

from figures.claims import verdicts
from figures.library import cells
from figures.library import data
from figures.paper import fig3c
from figures.paper import fig3e
from figures.paper import fig3f
from figures.plotting import style

_MODEL = 'model.name'
_SUPPORT = 'task.task_support'
# Our reading of "R2 close to one", at the published scale.
_CLOSE_TO_ONE = 0.9
# There, OOD accuracy is "high" above this, and "fails" below.
_HIGH = 0.5

_PAIRS = tuple(itertools.product(style.HYPERNETWORKS, style.MONOLITHIC))


def _on(
    frame: pd.DataFrame,
    model: str,
    support: str,
    split: str = 'ood',
    metric: str = 'accuracy',
) -> verdicts.Sample:
  cell = {_MODEL: model, _SUPPORT: support}
  return verdicts.sample(frame, cell, split, metric)


def _modular_above_monolithic(frame: pd.DataFrame) -> list[verdicts.Effect]:
  return [
      verdicts.difference(
          _on(frame, modular, 'random'), _on(frame, monolithic, 'random')
      )
      for modular, monolithic in _PAIRS
  ]


def _monolithic_above_modular(frame: pd.DataFrame) -> list[verdicts.Effect]:
  return [
      verdicts.difference(
          _on(frame, monolithic, 'non_compositional'),
          _on(frame, modular, 'non_compositional'),
      )
      for modular, monolithic in _PAIRS
  ]


def _falls_beyond_training(frame: pd.DataFrame) -> list[verdicts.Effect]:
  """OOD tasks against those with most modules, if these are more than K."""
  runs = data.rows(frame, {_SUPPORT: 'random'})
  runs = runs[runs[_MODEL].isin(style.HYPERNETWORKS)]
  largest = max(map(_modules_per_layer, runs['split']), default=0)
  if runs.empty or largest <= runs['task.max_active'].max():
    return []
  return [
      verdicts.difference(
          _on(frame, model, 'random'),
          _on(frame, model, 'random', f'ood_k{largest}'),
      )
      for model in style.HYPERNETWORKS
  ]


def _modules_per_layer(split: str) -> int:
  name, _, number = split.partition('ood_k')
  return int(number) if not name and number else 0


def _decodable_if_compositional(frame: pd.DataFrame) -> list[verdicts.Effect]:
  """Judges the value of R2 at the published scale only."""
  effects = _more_decodable(frame, 'random', 'non_compositional')
  for model in style.HYPERNETWORKS:
    high = _on(frame, model, 'random', metric='r2')
    if len(high.runs) and high.runs['published_scale'].all():
      effects.append(verdicts.level(high, _CLOSE_TO_ONE))
  return effects


def _decodable_if_connected(frame: pd.DataFrame) -> list[verdicts.Effect]:
  return _more_decodable(frame, 'connected', 'disconnected')


def _more_decodable(
    frame: pd.DataFrame, higher: str, lower: str
) -> list[verdicts.Effect]:
  return [
      verdicts.difference(
          _on(frame, model, higher, metric='r2'),
          _on(frame, model, lower, metric='r2'),
      )
      for model in style.HYPERNETWORKS
  ]


def _needs_combined_modules(frame: pd.DataFrame) -> list[verdicts.Effect]:
  """Every K above 1 against K = 1 with the same M.

  At the published scale also whether each is high, or fails.
  """
  effects = []
  for (m, k), model in itertools.product(sizes(frame), style.HYPERNETWORKS):
    ours = _at(frame, model, m, k)
    if k > 1:
      effects.append(verdicts.difference(ours, _at(frame, model, m, 1)))
    if len(ours.runs) and ours.runs['published_scale'].all():
      sign = 1 if k > 1 else -1
      name = ours.name if k > 1 else f'-{ours.name}'
      effects.append(verdicts.between(name, [ours], (sign,), sign * _HIGH))
  return effects


def _at(
    frame: pd.DataFrame, model: str, num_modules: int, max_active: int
) -> verdicts.Sample:
  cell: cells.Cell = dict(zip(fig3e.CELL, (model, num_modules, max_active)))
  return verdicts.sample(frame, cell)


def sizes(frame: pd.DataFrame) -> list[tuple[int, int]]:
  """Returns the pairs (M, K) that have runs."""
  found = frame[['task.num_modules', 'task.max_active']].drop_duplicates()
  return sorted(found.astype(int).itertuples(index=False, name=None))


def _best_in_between(frame: pd.DataFrame) -> list[verdicts.Effect]:
  """The size with the lowest validation loss against smallest and largest."""
  found = cells.select(fig3f.EXPERIMENT, frame, fig3f.CELL)
  effects = []
  for model in style.HYPERNETWORKS:
    by_size = fig3f.best_rates(found, model)
    if not by_size:
      continue
    best = min(by_size, key=lambda cell: fig3f.validation_loss(found, cell))
    effects += [
        verdicts.difference(
            verdicts.sample(frame, best), verdicts.sample(frame, extreme)
        )
        for extreme in by_size[:1] + by_size[1:][-1:]
    ]
  return effects


CLAIMS = (
    verdicts.Claim(
        id='3B-1',
        sentence=(
            'Compositional support: OOD accuracy of both hypernetworks is'
            ' higher than that of both monolithic models.'
        ),
        artefact='Figure 3B',
        experiment='fig3b',
        figure='fig3b',
        cell=(_MODEL, _SUPPORT),
        decide=_modular_above_monolithic,
    ),
    verdicts.Claim(
        id='3B-2',
        sentence=(
            'Non-compositional support: OOD accuracy of the hypernetworks'
            ' drops below that of the monolithic models.'
        ),
        artefact='Figure 3B',
        experiment='fig3b',
        figure='fig3b',
        cell=(_MODEL, _SUPPORT),
        decide=_monolithic_above_modular,
    ),
    verdicts.Claim(
        id='3C',
        sentence=(
            'The modules of OOD tasks can be decoded linearly from the'
            ' adapted parameters (R2 close to one) with compositional support,'
            ' less so with non-compositional support, for both hypernetworks.'
        ),
        artefact='Figure 3C',
        experiment='fig3c',
        figure='fig3c',
        cell=fig3c.CELL,
        decide=_decodable_if_compositional,
    ),
    verdicts.Claim(
        id='3D',
        sentence=(
            'Decodability is higher with connected than with disconnected'
            ' support, for both hypernetworks.'
        ),
        artefact='Figure 3D',
        experiment='fig3c',
        figure='fig3d',
        cell=fig3c.CELL,
        decide=_decodable_if_connected,
    ),
    verdicts.Claim(
        id='3E',
        sentence=(
            'For every M, both hypernetworks reach higher OOD accuracy if'
            ' training combines modules (K > 1) than if not (K = 1); at the'
            f' published scale, above {_HIGH:g} and below it.'
        ),
        artefact='Figure 3E',
        experiment='fig3e',
        figure='fig3e',
        cell=fig3e.CELL,
        decide=_needs_combined_modules,
        models=style.HYPERNETWORKS,
    ),
    verdicts.Claim(
        id='3F',
        sentence=(
            'OOD accuracy of both hypernetworks rises with some'
            ' overparameterisation (hidden units, modules) and then falls.'
        ),
        artefact='Figure 3F',
        experiment='fig3f',
        figure='fig3f',
        cell=fig3f.CELL,
        decide=_best_in_between,
        models=style.HYPERNETWORKS,
    ),
    verdicts.Claim(
        id='TXT-1',
        sentence=(
            'Compositional support: OOD accuracy of the hypernetworks falls'
            ' for combinations of more modules than training ever combined.'
        ),
        artefact='Section 4.1',
        experiment='fig3b',
        figure='fig3b',
        cell=(_MODEL, _SUPPORT),
        decide=_falls_beyond_training,
    ),
)

"""The paper's claims, each a sentence and the comparisons that decide it."""

import itertools

import pandas as pd

from figures import style
from figures import verdicts


def _modular_above_monolithic(frame):
  return [
      verdicts.Comparison(
          verdicts.sample(frame, modular, 'random', 'ood'),
          verdicts.sample(frame, monolithic, 'random', 'ood'),
      )
      for modular, monolithic in itertools.product(
          style.HYPERNETWORKS, style.MONOLITHIC
      )
  ]


def _monolithic_above_modular(frame):
  return [
      verdicts.Comparison(
          verdicts.sample(frame, monolithic, 'non_compositional', 'ood'),
          verdicts.sample(frame, modular, 'non_compositional', 'ood'),
      )
      for modular, monolithic in itertools.product(
          style.HYPERNETWORKS, style.MONOLITHIC
      )
  ]


def _falls_beyond_training(frame):
  """Compares OOD tasks with those of the most modules, if more than K."""
  runs = frame[
      frame['model'].isin(style.HYPERNETWORKS)
      & (frame['task_support'] == 'random')
  ]
  largest = max(map(_modules_per_layer, runs['split']), default=0)
  if runs.empty or largest <= runs['max_active'].max():
    return []
  return [
      verdicts.Comparison(
          verdicts.sample(frame, model, 'random', 'ood'),
          verdicts.sample(frame, model, 'random', f'ood_k{largest}'),
      )
      for model in style.HYPERNETWORKS
  ]


def _modules_per_layer(split):
  name, _, number = split.partition('ood_k')
  return int(number) if not name and number else 0


CLAIMS = (
    verdicts.Claim(
        id='3B-1',
        sentence=(
            'Compositional support: OOD accuracy of both hypernetworks is'
            ' higher than that of both monolithic models.'
        ),
        artefact='Figure 3B',
        experiment='fig3b',
        compare=_modular_above_monolithic,
    ),
    verdicts.Claim(
        id='3B-2',
        sentence=(
            'Non-compositional support: OOD accuracy of the hypernetworks'
            ' drops below that of the monolithic models.'
        ),
        artefact='Figure 3B',
        experiment='fig3b',
        compare=_monolithic_above_modular,
    ),
    verdicts.Claim(
        id='TXT-1',
        sentence=(
            'Compositional support: OOD accuracy of the hypernetworks falls'
            ' for combinations of more modules than training ever combined.'
        ),
        artefact='Section 4.1',
        experiment='fig3b',
        compare=_falls_beyond_training,
    ),
)


def evaluate(frames: dict[str, pd.DataFrame]) -> list[dict]:
  """Returns the entry of claims.json of every claim, in order."""
  return [verdicts.evaluate(claim, frames) for claim in CLAIMS]

"""Claims about the hyperteacher: Section 4.1, Figure 3, Appendix B."""

import itertools

from figures import style
from figures import verdicts

_MODEL = 'model.name'
_SUPPORT = 'task.task_support'


def _modular_above_monolithic(frame):
  return [
      verdicts.difference(
          verdicts.sample(frame, {_MODEL: modular, _SUPPORT: 'random'}),
          verdicts.sample(frame, {_MODEL: monolithic, _SUPPORT: 'random'}),
      )
      for modular, monolithic in itertools.product(
          style.HYPERNETWORKS, style.MONOLITHIC
      )
  ]


def _monolithic_above_modular(frame):
  held_out = {_SUPPORT: 'non_compositional'}
  return [
      verdicts.difference(
          verdicts.sample(frame, {_MODEL: monolithic, **held_out}),
          verdicts.sample(frame, {_MODEL: modular, **held_out}),
      )
      for modular, monolithic in itertools.product(
          style.HYPERNETWORKS, style.MONOLITHIC
      )
  ]


def _falls_beyond_training(frame):
  """Compares OOD tasks with those of the most modules, if more than K."""
  runs = frame[
      frame['model.name'].isin(style.HYPERNETWORKS)
      & (frame['task.task_support'] == 'random')
  ] if len(frame) else frame
  largest = max(map(_modules_per_layer, runs['split']), default=0)
  if runs.empty or largest <= runs['task.max_active'].max():
    return []
  cells = [{_MODEL: model, _SUPPORT: 'random'} for model in style.HYPERNETWORKS]
  return [
      verdicts.difference(
          verdicts.sample(frame, cell),
          verdicts.sample(frame, cell, f'ood_k{largest}'),
      )
      for cell in cells
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

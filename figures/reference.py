"""What the configs describe, and what the paper found, to set beside ours."""

import functools
from typing import Any, Mapping

from modular_hyperteacher import published
from modular_hyperteacher import published_seq2seq
from modular_hyperteacher import sweeps

# Which seeds were drawn is not a matter of scale.
_FREE_FIELDS = ('training.seeds', 'training.prng_impl')
# Whose paper preset is what the paper tabulates, model by model.
_TABULATED = 'fig3e'


described_runs = sweeps.described_runs


def is_published_scale(
    experiment: str, preset: str, config: dict[str, Any]
) -> bool:
  """Returns whether a run is what the paper ran, down to every field.

  The preset alone does not say: any of its fields can be overridden.
  """
  return preset == 'paper' and _decisive(config) in _published(experiment)


@functools.cache
def _published(experiment):
  runs = described_runs(experiment, 'paper')
  return frozenset(_decisive(run.config) for run in runs)


def _decisive(config):
  """Returns the fields that make a scale, as something to compare."""
  fields = {
      path: str(value)
      for block in sweeps.IDENTITY
      for path, value in sweeps.flatten(config[block], f'{block}.')
      if path not in _FREE_FIELDS
  }
  return frozenset(fields.items())


def published_accuracy(
    experiment: str, cell: Mapping[str, Any], split: str
) -> tuple[float, float] | None:
  """Returns a tabulated accuracy, as fractions.

  Args:
    experiment: such as 'fig3b'.
    cell: which of its runs: path -> value, such as {'model.name': 'anil'}.
    split: 'train', 'test', 'ood' or 'ood_k{k}'.

  Returns:
    (mean, dispersion as printed), or None where the paper has no number.
  """
  runs = described_runs(experiment, 'paper')
  for run, fields in zip(runs, _fields(experiment)):
    if all(fields.get(path) == value for path, value in cell.items()):
      return _tabulated(run.config, split)
  return None


@functools.cache
def _fields(experiment):
  runs = described_runs(experiment, 'paper')
  return [dict(sweeps.flatten(run.config)) for run in runs]


def _tabulated(config, split):
  """Returns the number in Tables A2-A8 for exactly this task and model.

  The number of outer steps does not count: the tables' runs took 100,000, most
  other experiments' 200,000. The second system's numbers are told apart by
  what was trained, not by an experiment of ours.
  """
  found = published_seq2seq.accuracy(config, split)
  if found is not None:
    return found
  for run in described_runs(_TABULATED, 'paper'):
    if all(run.config[block] == config[block] for block in ('task', 'model')):
      return published.accuracy(config, split)
  return None

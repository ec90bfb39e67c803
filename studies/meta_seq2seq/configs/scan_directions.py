"""Why are twenty extra directions easy at laptop scale, and hard in the paper?

Lake (2019, Section 4.5) reports that meta seq2seq uses "around right" far worse
if trained with twenty extra directions than with two (0.363 of the test
commands in place of 0.9996). At laptop scale it hardly does. Each run here is
that of `scan_around_right.py` with one difference between the scales
undone: dropout, width, the optimiser and its steps, or the commands that are
left out.

  python -m modular_hyperteacher.main --config=scan_directions
  python figures/make_all.py --only=scan_directions
"""

from collections.abc import Iterator
from typing import Any

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.studies.meta_seq2seq.configs import scan_around_right

# The fields that a run takes from the other scale, together.
CHANGES = {
    'dropout': ('model.dropout_rate',),
    'width': ('model.hidden_dim',),
    'optimiser': (
        'model.outer.learning_rate',
        'model.outer.decay_after',
        'training.num_outer_steps',
    ),
    'commands': (
        'task.max_actions',
        'task.max_query_actions',
        'task.max_support_actions',
    ),
}


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = scan_around_right.get_config(preset)
  config.experiment = 'scan_directions'
  config.sweep = tuple(_grids(preset))
  return config


def _grids(preset: str) -> Iterator[sweeps.Grid]:
  """Yields a grid for the scale as it is, and one per change."""
  other = 'paper' if preset == 'laptop' else 'laptop'
  fields = _fields(scan_around_right.get_config(other))
  for paths in ((), *CHANGES.values()):
    changed = {path: [fields[path]] for path in paths}
    yield dict(changed, model=['meta_seq2seq'], num_extra=[20])


def _fields(config: experiment.Config) -> dict[str, Any]:
  """Returns path -> value of the run of meta seq2seq."""
  blocks = config.to_dict()
  blocks['model'] = blocks['models']['meta_seq2seq']
  return dict(sweeps.flatten(blocks))

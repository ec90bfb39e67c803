"""SCAN's "jump" (Lake 2019, Sections 4.3 and 4.4): using a new verb at once.

The support set shows the meanings of four verbs; queries combine "jump" with
other words. In training, the meanings change in every episode: four verbs have
each other's meanings (permuted), or four of 24 verbs have four of 24 meanings
(extended). A standard network is trained on SCAN itself, where "jump" occurs
only alone, or with more verbs (aligned). At laptop scale, extended meanings and
standard networks are trained for twice as many steps.

  python -m modular_hyperteacher.main --config=scan_add_jump
  python figures/make_all.py --only=scan_table2,scan_table3
"""

from typing import Any

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.studies.meta_seq2seq.configs import blocks as seq2seq


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  longer: Any = {'num_outer_steps': [10_000]} if preset == 'laptop' else {}
  extended = {'meanings': ['extended'], 'num_extra': [20]}
  sweep = [
      dict(model=seq2seq.META),
      seq2seq.standard_grid(**longer),
      dict(model=seq2seq.META, **extended, **longer),
      seq2seq.standard_grid('aligned', num_extra=20, **longer),
  ]
  limit = seq2seq.limit_actions(preset, 8)
  task = seq2seq.scan_task('add_jump', 'permuted', **limit)
  blocks = seq2seq.blocks(preset, task)
  return experiment.make('scan_add_jump', preset, sweep, **blocks)

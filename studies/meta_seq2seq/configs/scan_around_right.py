"""SCAN's "around right" (Lake 2019, Section 4.5): combining known concepts.

The support set shows the meanings of "turn left" and "turn right"; queries
contain "around right". A standard network sees only "around left" in training.
In training episodes, two of four directions have two of four meanings. With
twenty extra directions instead of two, the paper found the task much harder.

  python -m modular_hyperteacher.main --config=scan_around_right
  python figures/make_all.py --only=scan_table3
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.studies.meta_seq2seq.configs import blocks as seq2seq


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  sweep = [
      dict(model=['meta_seq2seq'], num_extra=[2, 20]),
      seq2seq.standard_grid(),
  ]
  # "run around right" takes eight actions: fewer would leave few tests.
  limit = seq2seq.limit_actions(preset, 10)
  task = seq2seq.scan_task('around_right', 'extended', num_extra=2, **limit)
  blocks = seq2seq.blocks(preset, task)
  return experiment.make('scan_around_right', preset, sweep, **blocks)

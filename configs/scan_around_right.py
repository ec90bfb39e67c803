"""SCAN's "around right" (Lake 2019, Section 4.5): combining known concepts.

A network is told what "turn left" and "turn right" mean, and is asked what
"around right" does, of which a standard network saw "around left" alone. In
training, two directions out of four have two meanings out of four; with
twenty extra directions in place of two the paper found it much harder.

  python -m modular_hyperteacher.main --config=configs/scan_around_right.py
  python figures/make_all.py --only=scan_table3
"""

import ml_collections

from configs.blocks import seq2seq


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  task = seq2seq.scan_task('around_right', 'extended', num_extra=2)
  config = seq2seq.experiment('scan_around_right', preset, task)
  seq2seq.scale(config)
  # "run around right" takes eight actions: fewer would leave few tests.
  seq2seq.limit_actions(config, 10)
  config.sweep = (
      (('model', ('meta_seq2seq',)), ('task.num_extra', (2, 20))),
      seq2seq.standard_axes(),
  )
  return config

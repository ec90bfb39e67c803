"""SCAN's "around right" (Lake 2019, Section 4.5): combining known concepts.

A network is told what "turn left" and "turn right" mean, and is asked what
"around right" does, of which a standard network saw "around left" alone. In
training, two directions out of four have two meanings out of four; with
twenty extra directions in place of two the paper found it much harder.

  python -m modular_hyperteacher.main --config=configs/scan_around_right.py
  python figures/make_all.py --only=scan_table3
"""

from configs.blocks import experiment
from configs.blocks import seq2seq
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  sweep = [
      sweeps.grid(model=['meta_seq2seq'], num_extra=[2, 20]),
      seq2seq.standard_grid(),
  ]
  # "run around right" takes eight actions: fewer would leave few tests.
  limit = seq2seq.limit_actions(preset, 10)
  task = seq2seq.scan_task('around_right', 'extended', num_extra=2, **limit)
  blocks = seq2seq.blocks(preset, task)
  return experiment.make('scan_around_right', preset, sweep, **blocks)

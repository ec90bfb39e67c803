"""SCAN's longer outputs (Lake 2019, Section 4.6).

Support sets hold short commands, queries ask for longer ones, and the test
for longer ones still. No network of the paper gets far.

  python -m modular_hyperteacher.main --config=scan_length
  python figures/make_all.py --only=scan_table3,scan_lengths
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.studies.meta_seq2seq.configs import blocks as seq2seq


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  limits = {
      'num_support': 40,
      'max_actions': 12,
      'max_query_actions': 8,
      'max_support_actions': 6,
  }
  if preset == 'paper':
    limits = {
        'num_support': 100,
        'max_query_actions': 22,
        'max_support_actions': 11,
    }
  sweep = [dict(model=['meta_seq2seq']), seq2seq.standard_grid()]
  task = seq2seq.scan_task('length', 'extended', num_extra=20, **limits)
  blocks = seq2seq.blocks(preset, task)
  return experiment.make('scan_length', preset, sweep, **blocks)

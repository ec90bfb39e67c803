"""Mutual exclusivity (Lake 2019, Section 4.2): the meaning of a new word.

In every episode, four words stand for four colours in a new order. The support
set shows the meanings of three of them. The network must infer the fourth, for
assignments that it was not trained on.

  python -m modular_hyperteacher.main --config=scan_me
  python figures/make_all.py --only=scan_me
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.studies.meta_seq2seq.configs import blocks as seq2seq


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  sweep = dict(model=['meta_seq2seq'])
  blocks = seq2seq.blocks(
      preset,
      # Different queries of an episode.
      {'name': 'mutual_exclusivity', 'num_query': 20},
      num_outer_steps=10_000,
      dropout_rate=0.0,
      learning_rate=3e-3,
      decay_after=0.5,
  )
  if preset == 'paper':
    # As released. With padding left out, three of five seeds do not learn it.
    blocks['models']['meta_seq2seq']['mask_padding'] = False
  return experiment.make('scan_me', preset, sweep, **blocks)

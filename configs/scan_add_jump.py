"""SCAN's "jump" (Lake 2019, Sections 4.3 and 4.4): using a new verb at once.

A network is told what four verbs mean, and is asked commands that combine
"jump", of whose meaning training said something else in every episode. In
training, four verbs have each other's meanings (permuted), or four out of 24
have meanings out of 24 (extended). A standard network is trained on SCAN
itself, in which "jump" stands alone, or with more verbs (aligned). Meanings out
of 24 take longer to learn: at laptop scale, twice as many episodes, and batches
of standard networks.

  python -m modular_hyperteacher.main --config=configs/scan_add_jump.py
  python figures/make_all.py --only=scan_table2,scan_table3
"""

import ml_collections

from configs.blocks import seq2seq
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  longer = {'num_outer_steps': [10_000]} if preset == 'laptop' else {}
  limit = seq2seq.limit_actions(preset, 8)
  return seq2seq.make(
      'scan_add_jump',
      preset,
      [
          sweeps.grid(model=seq2seq.META),
          seq2seq.standard_grid(**longer),
          sweeps.grid(
              model=seq2seq.META,
              meanings=['extended'],
              num_extra=[20],
              **longer,
          ),
          seq2seq.standard_grid('aligned', num_extra=20, **longer),
      ],
      seq2seq.scan_task('add_jump', 'permuted', **limit),
  )

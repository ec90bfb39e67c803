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


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  task = seq2seq.scan_task('add_jump', 'permuted')
  config = seq2seq.experiment('scan_add_jump', preset, task)
  seq2seq.scale(config)
  seq2seq.limit_actions(config, 8)
  longer = ()
  if preset == 'laptop':
    longer = (('training.num_outer_steps', (10_000,)),)
  config.sweep = (
      (('model', seq2seq.META),),
      (*seq2seq.standard_axes(), *longer),
      (
          ('model', seq2seq.META),
          ('task.meanings', ('extended',)),
          ('task.num_extra', (20,)),
          *longer,
      ),
      (*seq2seq.standard_axes('aligned', num_extra=20), *longer),
  )
  return config

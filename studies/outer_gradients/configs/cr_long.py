"""Fifty inner steps: what does it cost not to differentiate through them?

The linear hypernetwork of `cr_training` with an inner loop of 50 steps. Rules
come in pairs of equal products: `truncated` with T and `linearised_control`
with T; `truncated` with 2 T and `contrastive_symmetric` with T.

  python -m modular_hyperteacher.main --config=cr_long
  python figures/make_all.py --only=cr_long
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.studies.outer_gradients.configs import blocks

NUM_STEPS = 50
# Rule, its own steps T.
RULES = (
    ('unrolled', None),
    ('first_order', None),
    ('truncated', 5),
    ('truncated', 10),
    ('truncated', 20),
    ('linearised_control', 5),
    ('linearised_control', 10),
    ('contrastive_symmetric', 5),
    ('contrastive_symmetric', 10),
)


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  made = blocks.base(preset)
  made['models'] = {
      f'{rule}_{last}'
      if last
      else rule: blocks.proximal(
          blocks.base(preset),
          'linear_hypernetwork',
          NUM_STEPS,
          blocks.rule(rule, last or 0),
      )
      for rule, last in RULES
  }
  sweep = dict(model=list(made['models']))
  return experiment.make('cr_long', preset, sweep, **made)

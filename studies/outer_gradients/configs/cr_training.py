"""Students trained by every rule for the outer gradient.

Task and student networks are Figure 3B's, with a proximal term and ten steps of
gradient descent inside. Hypernetworks, MAML (a complex synapse for each weight)
and ANIL; a linear hypernetwork that also learns the strengths of the proximal
term; and one whose gradients take norms of embeddings as constants, as in the
paper, for which the contrastive rule need not hold.

  python -m modular_hyperteacher.main --config=cr_training
  python figures/make_all.py --only=cr_training
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.studies.outer_gradients.configs import blocks

NUM_STEPS = 10
# Rule -> its own steps T.
ALL = {
    'unrolled': 0,
    'truncated': 5,
    'first_order': 0,
    'implicit_cg': 5,
    'contrastive_standard': 10,
    'contrastive_symmetric': 10,
    'linearised_control': 5,
}
FEW = ('unrolled', 'first_order', 'contrastive_symmetric', 'linearised_control')
LEARNED = {
    'contrastive_symmetric': 10,
    'implicit_cg': 5,
    'implicit_neumann': 10,
    't1_t2': 0,
}
STOPPED = ('unrolled', 'contrastive_symmetric', 'linearised_control')


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  made = blocks.base(preset)
  blocks_of = {}

  def add(model: str, rule: str, prefix: str = '', **fields: bool) -> str:
    """Adds a block, which shares no field with others; returns its name."""
    name = f'{prefix}{model}_{rule}'
    length = {**ALL, **LEARNED}[rule]
    blocks_of[name] = blocks.proximal(
        blocks.base(preset),
        model,
        NUM_STEPS,
        blocks.rule(rule, length),
        **fields,
    )
    return name

  linear, nonlinear = models.HYPERNETWORKS
  both = [add(linear, rule) for rule in ALL]
  random = [add(nonlinear, rule) for rule in ALL]
  random += [add(model, rule) for model in ('maml', 'anil') for rule in FEW]
  random += [
      add(linear, rule, 'learned_', learn_proximal=True) for rule in LEARNED
  ]
  random += [add(linear, rule, 'stopped_', stop_norm=True) for rule in STOPPED]
  made['models'] = blocks_of
  sweep = [
      dict(task_support=['random', 'non_compositional'], model=both),
      dict(task_support=['random'], model=random),
  ]
  return experiment.make('cr_training', preset, sweep, **made)

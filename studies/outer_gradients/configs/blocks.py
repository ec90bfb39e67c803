"""What the study's configs share: the inner loop, and the rules' fields."""

from typing import Any

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import presets

# The rate of inner gradient descent. Among 0.1 and 0.3 with a momentum of 0.9,
# and 0.3 and 1 without, the best for the unrolled linear hypernetwork after 100
# steps of one seed. The symmetric rule learned with this one alone.
RATE = 1.0
PROXIMAL = 0.01  # lambda
MAX_QUERY_LOSS = 10.0  # Nats, of negative phases.
_BETA = 0.1


def rule(gradient: str, num_last_steps: int = 0) -> dict[str, Any]:
  """Returns the fields of `model.outer` that a rule has.

  Args:
    gradient: its name.
    num_last_steps: T: nudged or differentiated steps, terms of the Neumann
      series, or iterations of conjugate gradients.
  """
  fields: dict[str, Any] = {'gradient': gradient}
  if gradient == 'truncated':
    fields['num_differentiated'] = num_last_steps
  elif gradient in ('implicit_cg', 'implicit_neumann'):
    fields['num_iterations'] = num_last_steps
  elif gradient not in ('unrolled', 'first_order', 't1_t2'):
    fields |= {'beta': _BETA, 'max_query_loss': MAX_QUERY_LOSS}
    fields['num_nudged_steps'] = num_last_steps
  return fields


def proximal(
    blocks: experiment.Block,
    model: str,
    num_steps: int,
    outer: dict[str, Any],
    **fields: Any,
) -> experiment.Block:
  """Returns the block of a model with a proximal term.

  Its inner loop is gradient descent on the whole support set.

  Args:
    blocks: as `base` returns them.
    model: the model of the paper.
    num_steps: N, inner steps.
    outer: changes of its outer loop, such as `rule` returns.
    **fields: other changes.
  """
  inner = {
      'solver': 'sgd',
      'num_steps': num_steps,
      'learning_rate': RATE,
      'weight_decay': 0.0,
      'eps_root': 0.0,
      'batch_size': None,
  }
  changes = {
      'name': f'proximal_{model}',
      'proximal': PROXIMAL,
      'learn_proximal': False,
      'inner': inner,
      'outer': outer,
  }
  if 'hypernetwork' in model:
    changes['stop_norm'] = False
  return presets.merge(blocks['models'][model], changes | fields)


def base(preset: str, num_seeds: int = 5) -> experiment.Block:
  """Returns Figure 3B's task and models, and training of some seeds."""
  blocks = hyperteacher.blocks(preset, num_modules=8)
  changes: dict[str, Any] = {}
  if preset != 'smoke':
    changes['seeds'] = tuple(range(2020, 2020 + num_seeds))
  if preset == 'laptop':
    changes |= {'num_outer_steps': 2000, 'evaluate_every': 250}
  blocks['training'] |= changes
  return blocks

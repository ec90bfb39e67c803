"""Models that the paper's three meta-learning problems share."""

from typing import Any

from ml_collections import config_dict

from configs.blocks import experiment

HYPERNETWORKS = ('linear_hypernetwork', 'nonlinear_hypernetwork')
MODELS = HYPERNETWORKS + ('anil', 'maml')


def hypernetwork(
    name: str, num_modules: int | None = None, **fields: Any
) -> experiment.Block:
  """Returns the block of a modular student."""
  return {
      'name': name,
      # M-hat, the student's modules: a number, or else a multiple of the
      # teacher's.
      'num_modules': config_dict.FieldReference(num_modules, field_type=int),
      'modules_per_teacher_module': 4,
      **fields,
  }


def inner(
    num_steps: int, learning_rate: float, batch_size: int | None = None
) -> experiment.Block:
  """Returns the block of an inner loop."""
  return {
      'num_steps': num_steps,
      'learning_rate': learning_rate,
      'weight_decay': 1e-4,
      # float32 machine epsilon, under the root of AdamW's second moment.
      'eps_root': 1.1920929e-07,
      # Support examples per step, with replacement; None for all.
      'batch_size': config_dict.FieldReference(batch_size, field_type=int),
  }


def outer(
    learning_rate: float, clip_norm: float, weight_decay: float, skips: int = 1
) -> experiment.Block:
  """Returns the block of an outer loop."""
  return {
      'learning_rate': learning_rate,
      'weight_decay': weight_decay,
      'clip_norm': clip_norm,
      # Non-finite gradients in a row that are skipped; 0 skips none.
      'max_consecutive_skips': skips,
  }

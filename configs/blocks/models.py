"""Models that the paper's three meta-learning problems share."""

from collections.abc import Sequence
from typing import Any

from ml_collections import config_dict

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import sweeps

HYPERNETWORKS = ('linear_hypernetwork', 'nonlinear_hypernetwork')
MONOLITHIC = ('anil', 'maml')
MODELS = HYPERNETWORKS + MONOLITHIC
# Rows of small students of the grid worlds.
SMALL_GRIDWORLD = {
    'num_hidden': (2, 2, 2, 2),
    'hidden_dim': (128, 64, 32, 32),
    # Half a cosine down to this share: with so few steps, it takes the place of
    # the long training at the published rate.
    'final_fraction': (0.01, 0.01, 0.01, 0.01),
}


def recomposition_sweep(preset: str, matched_width: int) -> list[sweeps.Grid]:
  """Returns all models on compositional and non-compositional support.

  The preset 'workstation' adds ANIL and MAML of a width at which they have as
  many meta-parameters as the linear hypernetwork.
  """
  supports = ['random', 'non_compositional']
  sweep: list[sweeps.Grid] = [dict(task_support=supports, model=MODELS)]
  if preset == presets.WORKSTATION:
    axes = {'hidden_dim': [matched_width]}
    sweep.append(dict(axes, task_support=supports, model=MONOLITHIC))
  return sweep


def make_all(**rows: Sequence[Any]) -> dict[str, experiment.Block]:
  """Returns the blocks of the four models, given a table such as Table A10.

  Its rows are fields of `make`, each with the values of ANIL, MAML, the linear
  and the nonlinear hypernetwork.
  """
  names = MONOLITHIC + HYPERNETWORKS
  columns = zip(*rows.values(), strict=True)
  return {n: make(n, **dict(zip(rows, c))) for n, c in zip(names, columns)}


def make(
    name: str,
    *,
    num_hidden: int,
    hidden_dim: int,
    num_steps: int,
    inner_rate: float,
    outer_rate: float,
    clip_norm: float,
    weight_decay: float,
    batch_size: int | None = None,
    num_modules: int | None = None,
    max_consecutive_skips: int = 1,
    final_fraction: float | None = None,
    task_chunk_size: int | None = None,
) -> experiment.Block:
  """Returns a model's block."""
  block = {
      'name': name,
      'num_hidden': num_hidden,
      'hidden_dim': hidden_dim,
      'inner': {
          'num_steps': num_steps,
          'learning_rate': inner_rate,
          'weight_decay': 1e-4,
          # float32 machine epsilon, under the root of AdamW's second moment.
          'eps_root': 1.1920929e-07,
          # Support examples per step, with replacement; None for all.
          'batch_size': config_dict.FieldReference(batch_size, field_type=int),
      },
      'outer': {
          'learning_rate': outer_rate,
          'weight_decay': weight_decay,
          'clip_norm': clip_norm,
          # Non-finite gradients in a row that are skipped; 0 skips none.
          'max_consecutive_skips': max_consecutive_skips,
      },
      # Tasks computed at once; None for what suits the platform.
      'task_chunk_size': config_dict.FieldReference(
          task_chunk_size, field_type=int
      ),
  }
  if final_fraction is not None:
    block['outer']['final_fraction'] = final_fraction
  if name in HYPERNETWORKS:
    # M-hat, the student's modules: a number, or else a multiple of the
    # teacher's.
    reference = config_dict.FieldReference(num_modules, field_type=int)
    block |= {'num_modules': reference, 'modules_per_teacher_module': 4}
  if name == 'nonlinear_hypernetwork':
    block |= {'generator_num_hidden': 4, 'generator_hidden_dim': 32}
  return block

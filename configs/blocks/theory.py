"""Blocks that Figures 2C and 2D and Table A1 share.

Values are the published ones (Section 3, Appendix B). The student's latent is
inferred in one of two ways: 'adam', as published, 300 steps on fresh data; or
'levenberg_marquardt', a converged solution of the same problem, which is what
the theorems assume. 'laptop' keeps teacher, student and families, and shortens
training: fewer examples and tasks, a higher learning rate, and for 'adam' fewer
and longer inner steps. There, 'adam' is far from trained, so only 'workstation'
trains with it, too.
"""

from collections.abc import Sequence
from typing import Any

from ml_collections import config_dict

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import sweeps

# Sizes of large students, as multiples of the teacher's.
FACTORS = (2, 4, 8, 16, 32)
_SMALL_TASK = {'num_support': 64, 'num_query': 64, 'num_evaluation_query': 256}


def blocks(
    preset: str, *, num_seeds: int = 3, chunk_size: int = 2, **fields: Any
) -> experiment.Block:
  """Returns the task, models and training of a preset.

  There are `num_seeds` above the smoke scale. At laptop scale,
  Levenberg-Marquardt computes `chunk_size` tasks at once: Jacobians of few
  tasks stay in the cache. Fields replace the task's.
  """
  scale = presets.choose(
      preset,
      smoke=experiment.SMOKE | {'num_evaluation_tasks': 16},
      laptop={'meta_batch_size': 32, 'num_evaluation_tasks': 256},
      paper={'meta_batch_size': 64, 'num_evaluation_tasks': 512},
  )
  num_seeds = 1 if preset == 'smoke' else num_seeds
  seeds = {'seeds': tuple(range(100, 100 + num_seeds))}
  small = {} if preset == 'paper' else _SMALL_TASK
  return {
      'task': _task() | small | fields,
      'models': _models(preset, chunk_size),
      'training': experiment.training(
          **{'num_outer_steps': 60_000} | scale | seeds
      ),
  }


def grid(
    preset: str, solver: str, laptop_steps: int, **axes: Any
) -> sweeps.Grid:
  """Returns a grid of runs whose latents are inferred by a solver.

  Outer steps at laptop scale differ between solvers, as an inner loop of 100
  steps costs more.
  """
  if preset == 'laptop':
    axes = {'num_outer_steps': [laptop_steps], **axes}
  return dict(model=[solver], **axes)


def size(
    hidden_factors: Sequence[int], module_factors: Sequence[int]
) -> dict[str, Sequence[int]]:
  """Returns the axes of a grid: hidden units and modules of the student.

  Both are given as multiples of the teacher's.
  """
  return {
      'hidden_dim': [16 * factor for factor in hidden_factors],
      'modules_per_teacher_module': module_factors,
  }


def solvers(preset: str, levenberg_marquardt: int, adam: int) -> dict[str, int]:
  """Returns the ways to infer latents -> outer steps at laptop scale."""
  ways = {'levenberg_marquardt': levenberg_marquardt, 'adam': adam}
  if preset == 'paper':
    del ways['levenberg_marquardt']
  if preset == 'laptop':
    del ways['adam']
  return ways


def _task() -> experiment.Block:
  return {
      'name': 'teacher_student',
      # M.
      'num_modules': 6,
      # Which modules are combined in training: a name in
      # tasks/supports/families.py.
      'task_support': 'singles_ring',
      # 'discrete' or 'continuous', in training; evaluation is continuous.
      'latent_type': 'discrete',
      # Draws continuous latents: 'released', or 'paper' for its Algorithm 1.
      'sampler': 'released',
      'input_dim': 16,
      'output_dim': 4,
      'teacher_hidden_dim': 16,
      # Examples per task; 'adam' draws as many anew at every inner step.
      'num_support': 256,
      'num_query': 256,
      'num_evaluation_query': 1024,
      # Whether the tasks of a meta-batch share the inputs of an inner step.
      'shared_inputs': False,
  }


def _models(preset: str, chunk_size: int) -> experiment.Block:
  published = {
      'adam': _student('adamw', 300, 0.003, fresh_support=True),
      'levenberg_marquardt': _student('levenberg_marquardt', 12, 0.0),
  }
  if preset == 'paper':
    return published
  small = {
      'adam': {
          'inner': {
              'num_steps': 100 if preset == 'laptop' else 4,
              'learning_rate': 0.01,
          },
          'outer': {'learning_rate': 3e-3},
      },
      # At 3e-3 the three triples are far from trained after as many steps.
      'levenberg_marquardt': {'outer': {'learning_rate': 1e-2}},
  }
  if preset == 'laptop':
    small['adam']['task_chunk_size'] = 8
    small['levenberg_marquardt']['task_chunk_size'] = chunk_size
  return presets.merge(published, small)


def _student(
    solver: str,
    num_steps: int,
    learning_rate: float,
    fresh_support: bool = False,
) -> experiment.Block:
  return {
      'name': 'modular_student',
      # Hidden units; the teacher has 16.
      'hidden_dim': 32,
      # M-hat: a number, or else a multiple of the teacher's modules.
      'num_modules': config_dict.placeholder(int),
      'modules_per_teacher_module': 2,
      'inner': {
          'solver': solver,
          'num_steps': num_steps,
          'learning_rate': learning_rate,
          # Whether every step sees new examples.
          'fresh_support': fresh_support,
          # Whether a task starts from a draw of its own.
          'random_start': False,
          # At the optimum of the latent, no second-order part is left.
          'second_order': False,
      },
      'outer': {
          'learning_rate': 1e-3,
          # Share of it at the end of a cosine decay.
          'final_fraction': 1e-3,
          'weight_decay': 0.0,
          'clip_norm': config_dict.placeholder(float),
          'max_consecutive_skips': 0,
      },
  }

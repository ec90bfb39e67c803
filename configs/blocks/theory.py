"""Blocks that Figures 2C and 2D and Table A1 share, and how presets scale.

Values are the published ones (Section 3, Appendix B). The student's latent is
inferred in one of two ways: 'adam', as published, 300 steps on fresh data; or
'levenberg_marquardt', a converged solution of the same problem, which is what
the theorems assume.
"""

from collections.abc import Mapping

import ml_collections
from ml_collections import config_dict

from configs.blocks import common

SOLVERS = ('levenberg_marquardt', 'adam')
# Inner loop -> outer steps and tasks computed at once, at laptop scale: an
# inner loop of 100 steps costs more; Jacobians of few tasks stay in the cache.
LAPTOP = {'levenberg_marquardt': (8000, 2), 'adam': (1500, 8)}


def experiment(name: str, preset: str) -> common.Config:
  """Returns a config of the theory's blocks, at its preset's scale."""
  config = common.experiment(
      name,
      preset,
      task=_task(),
      models=ml_collections.ConfigDict({
          'adam': _student(
              num_steps=300, learning_rate=0.003, fresh_support=True
          ),
          'levenberg_marquardt': _student(
              num_steps=12, solver='levenberg_marquardt'
          ),
      }),
      training=common.training(num_outer_steps=60_000),
  )
  config.training.update({
      'seeds': (100, 101, 102),
      'meta_batch_size': 64,
      'num_evaluation_tasks': 512,
  })
  _scale(config)
  return config


def solver_axes(
    solver: str,
    preset: str,
    laptop: Mapping[str, tuple[int, int]] = LAPTOP,
) -> tuple:
  """Returns the axes of a sweep that choose how latents are inferred."""
  axes = (('model', (solver,)),)
  if preset != 'laptop':
    return axes
  num_outer_steps, chunk_size = laptop[solver]
  return axes + (
      ('training.num_outer_steps', (num_outer_steps,)),
      ('execution.task_chunk_size', (chunk_size,)),
  )


def size_axes(
    config: common.Config, hidden_factor: int, module_factor: int
) -> tuple:
  """Returns the axes of a sweep that set the student's size.

  Args:
    config: whose teacher the size is relative to.
    hidden_factor: hidden units, as a multiple of the teacher's.
    module_factor: modules, as a multiple of the teacher's.
  """
  hidden_dim = hidden_factor * config.task.teacher_hidden_dim
  return (
      ('model.hidden_dim', (hidden_dim,)),
      ('model.modules_per_teacher_module', (module_factor,)),
  )


def solvers(preset: str) -> tuple[str, ...]:
  """Returns the ways to infer latents: the published one at its scale."""
  return ('adam',) if preset == 'paper' else SOLVERS


def _task() -> ml_collections.ConfigDict:
  return ml_collections.ConfigDict({
      'name': 'teacher_student',
      # M.
      'num_modules': 6,
      # Which modules are combined in training: a name in tasks/families.py.
      'task_support': 'singles_ring',
      # 'discrete' or 'continuous', in training; evaluation is continuous.
      'latent_type': 'discrete',
      # Of continuous latents: 'released', or 'paper' for its Algorithm 1.
      'sampler': 'released',
      'input_dim': 16,
      'output_dim': 4,
      'teacher_hidden_dim': 16,
      # Examples per task; 'adam' draws as many anew at every inner step.
      'num_support': 256,
      'num_query': 256,
      'num_evaluation_query': 1024,
  })


def _student(
    num_steps: int,
    learning_rate: float = 0.0,
    fresh_support: bool = False,
    solver: str = 'adamw',
) -> ml_collections.ConfigDict:
  return ml_collections.ConfigDict({
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
  })


def _scale(config: common.Config) -> None:
  """Scales from the published to a preset's scale.

  'laptop' keeps teacher, student and families, and shortens training: fewer
  examples and tasks, a higher learning rate, and for 'adam' fewer and longer
  inner steps. 'smoke' takes a few steps of that.
  """
  if config.preset == 'paper':
    return
  config.task.update({
      'num_support': 64,
      'num_query': 64,
      'num_evaluation_query': 256,
  })
  config.execution.log_every = 50
  config.models.adam.inner.update({'num_steps': 100, 'learning_rate': 0.01})
  config.models.adam.outer.learning_rate = 3e-3
  # At 3e-3 the three triples are far from trained after as many steps.
  config.models.levenberg_marquardt.outer.learning_rate = 1e-2
  config.training.update({
      'seeds': (100, 101, 102, 103, 104),
      'meta_batch_size': 32,
      'num_evaluation_tasks': 256,
  })
  if config.preset == 'smoke':
    config.models.adam.inner.num_steps = 4
    config.training.update({
        'seeds': (100,),
        'num_outer_steps': 4,
        'meta_batch_size': 8,
        'evaluate_every': 4,
        'num_evaluation_tasks': 16,
    })
    config.execution.log_every = 2

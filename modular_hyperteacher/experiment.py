"""From a run's config to everything that the run is made of.

All user input is checked here, in what builds either system, or in the
constructors called from there, before anything is compiled.
"""

import dataclasses
import functools
from typing import Any

import jax

from modular_hyperteacher import bilevel_experiment
from modular_hyperteacher import errors
from modular_hyperteacher import experiment_base as base
from modular_hyperteacher import precision
from modular_hyperteacher import randomness
from modular_hyperteacher.learning import programs
from modular_hyperteacher.seq2seq import experiment as seq2seq_experiment

# JAX's other generators draw the numbers of a whole `vmap` from its first key:
# a task would depend on the tasks beside it, and redrawing might never end.
PRNG_IMPLEMENTATIONS = ('threefry2x32',)


# Task -> what builds its system's experiments.
_BUILD = dict.fromkeys(
    bilevel_experiment.TASKS, bilevel_experiment.build
) | dict.fromkeys(seq2seq_experiment.EPISODES, seq2seq_experiment.build)


def build(config: dict[str, Any], num_devices: int) -> base.Experiment:
  """Returns the experiment that a run's config describes.

  Args:
    config: nested dict with the blocks `task`, `model`, `training` and
      `execution`, as in `sweeps.Run.config`.
    num_devices: over which every meta-batch is divided.

  Raises:
    ValueError: if a field is missing, unknown or impossible; names the field,
      what was given and what is allowed.
  """
  training = base.call(
      base.TrainingConfig, 'training', config['training']
  )
  training = dataclasses.replace(training, seeds=tuple(training.seeds))
  execution = base.call(
      base.ExecutionConfig, 'execution', config['execution']
  )
  _check_training(training, execution, num_devices)
  build_system = base.choose(_BUILD, 'task', dict(config['task']))
  built = build_system(config, training, execution, num_devices)
  system = _with_products(built.system, training.matmul_precision)
  return dataclasses.replace(built, system=system)


def root_keys(training: base.TrainingConfig) -> list[jax.Array]:
  """Returns one root key per seed."""
  return [
      randomness.root_key(seed, training.prng_impl) for seed in training.seeds
  ]


def draw_worlds(experiment: base.Experiment) -> list[programs.World]:
  """Returns what the tasks of every seed are drawn from.

  Raises:
    ValueError: if the support cannot be drawn.
  """
  draw = experiment.system.draw_world
  return [draw(root) for root in root_keys(experiment.training)]


def count_combinations(
    experiment: base.Experiment, worlds: list[programs.World]
) -> dict[str, list[int]]:
  """Returns how many combinations each split holds, one number per seed."""
  return {
      split: [
          experiment.system.num_combinations(world.task_params, split)
          for world in worlds
      ]
      for split in ('train',) + experiment.system.evaluation_splits
  }


def _with_products(system, level):
  """Computes steps at a level of precision, worlds and analyses exactly."""
  exactly = functools.partial(precision.at, precision.FLOAT32)

  def make_analyse(worlds, roots):
    analyse = system.make_analyse(worlds, roots)
    return analyse and exactly(analyse)

  return system._replace(
      draw_world=exactly(system.draw_world),
      init=exactly(system.init),
      step=precision.at(level, system.step),
      evaluate=precision.at(level, system.evaluate),
      make_analyse=exactly(make_analyse),
  )


def _check_training(training, execution, num_devices):
  positive = {
      'training.num_outer_steps': training.num_outer_steps,
      'training.meta_batch_size': training.meta_batch_size,
      'training.evaluate_every': training.evaluate_every,
      'training.num_evaluation_tasks': training.num_evaluation_tasks,
      'execution.log_every': execution.log_every,
  }
  for field, value in positive.items():
    if value < 1:
      raise errors.UserError(f'{field} is {value}; it must be at least 1.')
  if not execution.checkpoint_every_s >= 0:
    raise errors.UserError(
        f'execution.checkpoint_every_s is {execution.checkpoint_every_s}; it'
        ' must be at least 0.'
    )
  for field in ('meta_batch_size', 'num_evaluation_tasks'):
    value = getattr(training, field)
    if value % num_devices:
      raise errors.UserError(
          f'training.{field} is {value}; it must be a multiple of the'
          f' {num_devices} devices.'
      )
  chunk = execution.task_chunk_size
  share = training.meta_batch_size // num_devices
  if chunk is not None and (chunk < 1 or share % min(chunk, share)):
    raise errors.UserError(
        f'execution.task_chunk_size is {chunk}; it must divide the {share}'
        ' tasks per device.'
    )
  seeds = training.seeds
  # JAX makes a key of 32 bits.
  valid = all(type(seed) is int and 0 <= seed < 2**32 for seed in seeds)
  if not seeds or not valid or len(set(seeds)) < len(seeds):
    raise errors.UserError(
        f'training.seeds is {seeds}; it must list different integers, none'
        ' negative, all less than 2^32.'
    )
  if training.matmul_precision not in precision.LEVELS:
    raise errors.UserError(
        f"training.matmul_precision is '{training.matmul_precision}'; choose"
        f' one of {", ".join(precision.LEVELS)}.'
    )
  if training.prng_impl not in PRNG_IMPLEMENTATIONS:
    raise errors.UserError(
        f"training.prng_impl is '{training.prng_impl}'; allowed is only"
        f' {", ".join(PRNG_IMPLEMENTATIONS)}, whose draws for one task do not'
        ' depend on other tasks.'
    )

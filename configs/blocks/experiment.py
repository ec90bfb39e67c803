"""Builds a config from its blocks.

A config describes the task, the models, the training and a sweep over their
fields. Fields of `execution` change results by rounding at most. Every block is
a plain mapping for one preset.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import ml_collections
from ml_collections import config_dict

from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import sweeps

# An ml_collections.ConfigDict, whose nested fields have no static types.
Config: TypeAlias = Any
Block: TypeAlias = dict[str, Any]

# The training of a smoke test.
SMOKE = {
    'seeds': (2020,),
    'num_outer_steps': 4,
    'meta_batch_size': 8,
    'evaluate_every': 4,
    'num_evaluation_tasks': 8,
}
LAPTOP_GRIDWORLD = {
    'num_outer_steps': 3000,
    'meta_batch_size': 16,
    'num_evaluation_tasks': 256,
}


def make(
    name: str,
    preset: str,
    sweep: sweeps.Grid | Iterable[sweeps.Grid],
    *,
    task: Mapping[str, Any],
    models: Mapping[str, Any],
    training: Mapping[str, Any],
    log_every: int | None = None,
) -> Config:
  """Returns the config of an experiment: these blocks, and one grid or several.

  Models are name -> fields. Beside those that decide results, a model may have
  `task_chunk_size`, which `execution.task_chunk_size` overrides. There are
  `log_every` outer steps between rows of training metrics, or what suits the
  preset.

  Raises:
    ValueError: if there is no such preset.
  """
  usual = presets.choose(preset, smoke=2, laptop=50, desktop=100, paper=100)
  return ml_collections.ConfigDict({
      'experiment': name,
      'preset': preset,
      'task': task,
      'models': models,
      'training': training,
      'execution': {
          'log_every': log_every or usual,
          # Seconds between checkpoints.
          'checkpoint_every_s': 60.0,
          # Tasks computed at once on a device; bounds memory. None for what
          # the model's block says, or else what suits the platform.
          'task_chunk_size': config_dict.placeholder(int),
          # Whether to optimise machine code, which takes longer to compile. A
          # smoke test's few steps are not worth it.
          'optimise': preset != 'smoke',
      },
      'sweep': (sweep,) if isinstance(sweep, dict) else tuple(sweep),
  })


def training(**fields: Any) -> Block:
  """Returns a training block; published values but for `fields` (C.2.2)."""
  return {
      # Each gives one curve.
      'seeds': (2020, 2021, 2022),
      'num_outer_steps': 200_000,
      # Tasks per outer step.
      'meta_batch_size': 128,
      # Outer steps between evaluations; tasks per split at each.
      'evaluate_every': 1000,
      'num_evaluation_tasks': 1024,
      # JAX's random number generator.
      'prng_impl': 'threefry2x32',
      # Float32 products on GPUs and TPUs: 'float32', or what is faster there
      # and less exact, 'tensorfloat32' or 'bfloat16'.
      'matmul_precision': 'float32',
  } | fields

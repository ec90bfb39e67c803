"""What the experiments of both systems share: settings, names, fields."""

import dataclasses
import inspect
from typing import Any, Callable

from modular_hyperteacher import errors
from modular_hyperteacher import precision
from modular_hyperteacher.learning import programs


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
  """How long, how often and with which seeds.

  Attributes:
    seeds: each gives one curve; all are trained side by side.
    num_outer_steps: outer steps.
    meta_batch_size: tasks per outer step.
    evaluate_every: outer steps between evaluations.
    num_evaluation_tasks: tasks per split.
    prng_impl: JAX's random number generator.
    matmul_precision: of float32 products, where the device has the choice: one
      of `precision.LEVELS`.
  """

  seeds: tuple[int, ...]
  num_outer_steps: int
  meta_batch_size: int
  evaluate_every: int
  num_evaluation_tasks: int
  prng_impl: str
  matmul_precision: str = precision.FLOAT32


@dataclasses.dataclass(frozen=True)
class ExecutionConfig:
  """What changes how a run is computed, but not its results.

  Attributes:
    log_every: outer steps between rows of training metrics.
    checkpoint_every_s: seconds between checkpoints.
    task_chunk_size: tasks computed at once on a device, so bounds memory;
      None for what suits the platform.
    optimise: False for programs that are compiled in less time and run slower,
      for runs of a few steps. Only one process on a CPU heeds it.
  """

  log_every: int
  checkpoint_every_s: float
  task_chunk_size: int | None = None
  optimise: bool = True


@dataclasses.dataclass(frozen=True)
class Experiment:
  """Everything that a run is made of."""

  system: programs.System
  training: TrainingConfig
  execution: ExecutionConfig


def choose(table: dict[str, Any], block: str, fields: dict[str, Any]) -> Any:
  """Returns what a block's field `name`, which is taken out, stands for."""
  name = fields.pop('name')
  if name not in table:
    raise errors.UserError(
        f"{block}.name is '{name}'; choose one of"
        f' {", ".join(repr(known) for known in table)}.'
    )
  return table[name]


def call(function: Callable[..., Any], block: str, fields: dict[str, Any]):
  """Calls with a block's fields; checks first that they are the right ones."""
  parameters = inspect.signature(function).parameters
  for field in fields:
    if field not in parameters:
      raise errors.UserError(
          f'{block}.{field} does not exist; {block} has'
          f' {", ".join(parameters)}.'
      )
  for field, parameter in parameters.items():
    if parameter.default is parameter.empty and field not in fields:
      raise errors.UserError(f'{block}.{field} is missing.')
  return function(**fields)

"""Settings that the experiments of all systems share."""

import dataclasses

from modular_hyperteacher import errors
from modular_hyperteacher.devices import precision
from modular_hyperteacher.learning import programs

# JAX's other generators draw all numbers of a `vmap` from its first key: a task
# would depend on the tasks beside it, and rejection sampling might never end.
PRNG_IMPLEMENTATIONS = ('threefry2x32',)


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
  """Duration, batch sizes and seeds of training.

  Attributes:
    seeds: each gives one curve; all are trained together.
    num_outer_steps: outer steps.
    meta_batch_size: tasks per outer step.
    evaluate_every: outer steps between evaluations.
    num_evaluation_tasks: tasks per split.
    prng_impl: JAX's random number generator.
    matmul_precision: of float32 products, if the device offers several: one of
      `precision.LEVELS`.
  """

  seeds: tuple[int, ...]
  num_outer_steps: int
  meta_batch_size: int
  evaluate_every: int
  num_evaluation_tasks: int
  prng_impl: str
  matmul_precision: str = precision.FLOAT32

  def __post_init__(self) -> None:
    object.__setattr__(self, 'seeds', tuple(self.seeds))
    for field in (
        'num_outer_steps',
        'meta_batch_size',
        'evaluate_every',
        'num_evaluation_tasks',
    ):
      _check_at_least_one(f'training.{field}', getattr(self, field))
    # A key has 32 bits.
    valid = all(type(s) is int and 0 <= s < 2**32 for s in self.seeds)
    valid = valid and 0 < len(self.seeds) == len(set(self.seeds))
    rule = 'it must list different integers from 0 to 2^32 - 1'
    errors.require(valid, 'training.seeds', self.seeds, rule)
    field, level = 'training.matmul_precision', self.matmul_precision
    errors.require_choice(field, level, precision.LEVELS)
    if self.prng_impl not in PRNG_IMPLEMENTATIONS:
      raise errors.UserError(
          f"training.prng_impl is '{self.prng_impl}'; the only choice is"
          f' {", ".join(PRNG_IMPLEMENTATIONS)}, whose draws for a task do not'
          ' depend on other tasks.'
      )


@dataclasses.dataclass(frozen=True)
class ExecutionConfig:
  """How a run is computed; changes its results by rounding at most.

  Attributes:
    log_every: outer steps between rows of training metrics in metrics.csv.
    checkpoint_every_s: seconds between checkpoints.
    task_chunk_size: tasks computed together on a device, which bounds memory;
      None for the best number on the platform.
    optimise: False compiles faster but runs slower, for runs of a few steps.
      Ignored except by a single process on a CPU.
  """

  log_every: int
  checkpoint_every_s: float
  task_chunk_size: int | None = None
  optimise: bool = True

  def __post_init__(self) -> None:
    _check_at_least_one('execution.log_every', self.log_every)
    value, rule = self.checkpoint_every_s, 'it must be at least 0'
    errors.require(value >= 0, 'execution.checkpoint_every_s', value, rule)


@dataclasses.dataclass(frozen=True)
class Experiment:
  """All objects of a run."""

  system: programs.System
  training: TrainingConfig
  execution: ExecutionConfig


def is_analysed(step: int, evaluate_every: int) -> bool:
  """Whether an evaluation is the first, second, fourth, eighth, ..."""
  return (step // evaluate_every).bit_count() == 1


def check_division(
    training: TrainingConfig, execution: ExecutionConfig, num_devices: int
) -> None:
  """Raises UserError unless devices and chunks divide the batches."""
  for field in ('meta_batch_size', 'num_evaluation_tasks'):
    value = getattr(training, field)
    rule = f'it must be a multiple of the {num_devices} devices'
    errors.require(value % num_devices == 0, f'training.{field}', value, rule)
  chunk = execution.task_chunk_size
  share = training.meta_batch_size // num_devices
  divides = chunk is None or (chunk >= 1 and share % min(chunk, share) == 0)
  rule = f'it must divide the {share} tasks per device'
  errors.require(divides, 'execution.task_chunk_size', chunk, rule)


def _check_at_least_one(field: str, value: int) -> None:
  if value < 1:
    raise errors.UserError(f'{field} is {value}; it must be at least 1.')

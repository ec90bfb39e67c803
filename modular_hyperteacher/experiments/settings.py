"""Settings that the experiments of all systems share."""

from collections.abc import Sequence
import dataclasses
from typing import Annotated, Any, ClassVar

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher.devices import precision
from modular_hyperteacher.learning import programs
from modular_hyperteacher.untrusted import rules

_Number = Annotated[int, rules.at_least(1)]
# Logged steps of all seeds; each takes about 200 bytes of metrics.csv.
_MAX_LOGGED = 10**6


def _check_seeds(seeds: Sequence[Any], field: str) -> None:
  # A key has 32 bits.
  valid = all(type(seed) is int and 0 <= seed < 2**32 for seed in seeds)
  valid = valid and 0 < len(seeds) == len(set(seeds))
  rule = 'it must list different integers from 0 to 2^32 - 1'
  errors.require(valid, field, tuple(seeds), rule)


def _check_prng(name: str, field: str) -> None:
  rule = f'the only choice is {randomness.GENERATOR}, whose draws for a task do'
  rule += ' not depend on other tasks'
  errors.require(name == randomness.GENERATOR, field, repr(name), rule)


@dataclasses.dataclass(frozen=True)
class TrainingConfig(rules.Record):
  """Duration, batch sizes and seeds of training."""

  BLOCK: ClassVar[str] = 'training'

  seeds: Annotated[tuple[int, ...], _check_seeds]  # all are trained together
  num_outer_steps: _Number
  meta_batch_size: _Number  # tasks per outer step
  evaluate_every: _Number  # outer steps
  num_evaluation_tasks: _Number  # per split
  prng_impl: Annotated[str, _check_prng]
  # How exact float32 products are, if the device has a choice.
  matmul_precision: Annotated[str, rules.one_of(precision.LEVELS)] = (
      precision.FLOAT32
  )

  def __post_init__(self) -> None:
    object.__setattr__(self, 'seeds', tuple(self.seeds))
    super().__post_init__()


@dataclasses.dataclass(frozen=True)
class ExecutionConfig(rules.Record):
  """How a run is computed; changes its results by rounding at most."""

  BLOCK: ClassVar[str] = 'execution'

  log_every: _Number  # outer steps between rows of training metrics
  checkpoint_every_s: rules.NotNegative
  # Tasks computed together on a device, at most, which bounds memory; None for
  # the best number on the platform.
  task_chunk_size: _Number | None = None
  # False compiles faster but runs slower, for runs of a few steps. Ignored
  # except by a single process on a CPU.
  optimise: bool = True


@dataclasses.dataclass(frozen=True)
class Experiment:
  """All objects of a run."""

  system: programs.System
  training: TrainingConfig
  execution: ExecutionConfig


def is_analysed(step: int, evaluate_every: int) -> bool:
  """Whether an evaluation is the first, second, fourth, eighth, ..."""
  return (step // evaluate_every).bit_count() == 1


def check_sizes(
    training: TrainingConfig, execution: ExecutionConfig, num_devices: int
) -> None:
  """Raises UserError unless devices divide the batches and rows are few."""
  for field in ('meta_batch_size', 'num_evaluation_tasks'):
    value = getattr(training, field)
    rule = f'it must be a multiple of the {num_devices} devices'
    errors.require(value % num_devices == 0, f'training.{field}', value, rule)
  least = -(-training.num_outer_steps * len(training.seeds) // _MAX_LOGGED)
  every = execution.log_every
  rule = (
      f'it must be at least {least}, or metrics.csv becomes too large to read'
  )
  errors.require(every >= least, 'execution.log_every', every, rule)

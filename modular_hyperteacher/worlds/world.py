"""A world: an endless supply of tasks as NumPy arrays, and how to score.

Shapes, as in `tasks/base.py`: B tasks, S and Q examples of support and query
set, X input features, Y outputs, L layers, M modules.
"""

import abc
from collections.abc import Callable, Mapping
import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher import untrusted
from modular_hyperteacher.devices import jax_settings
from modular_hyperteacher.devices import platforms
from modular_hyperteacher.devices import precision
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.untrusted import npz

# Limits of one draw.
MAX_TASKS = 2**20
MAX_BYTES = 2**31


class Tasks(NamedTuple):
  """Tasks of equal shapes.

  A mask is True where an example counts. In worlds of sequences, an example is
  a row: X input tokens, and T target tokens up to EOS; what follows EOS is
  padding, the token SOS.
  """

  support_inputs: np.ndarray  # [B, S, X] float32; int32 for sequences
  # [B, S, Y] float32; [B, S] int32 for actions; [B, S, T] int32 for sequences
  support_targets: np.ndarray
  support_mask: np.ndarray  # [B, S] bool
  query_inputs: np.ndarray  # As support_inputs, with Q examples.
  query_targets: np.ndarray  # As support_targets.
  query_mask: np.ndarray  # [B, Q] bool
  latents: np.ndarray  # [B, L, M] float32; [B, 0, 0] for sequences


@dataclasses.dataclass(frozen=True, eq=False)
class World(abc.ABC):
  """A distribution of tasks, with the parameters of one seed."""

  name: str  # As in `worlds.list()`.
  preset: str | None  # The config with these fields; None: your own task.
  experiment: str | None  # The config that describes it, such as 'fig3b'.
  fields: Mapping[str, Any]
  seed: int  # Decides the teacher or the mazes and the split, as in a run.
  params: Any = dataclasses.field(repr=False)  # Arrays drawn from the seed.

  def __reduce__(self) -> tuple[Any, ...]:
    """Pickles the fields, from which functions and arrays are made again."""
    remake = plugins.resolve(f'{plugins.PACKAGE}.worlds.catalogue:remake')
    block = {'name': self.name, **self.fields}
    return remake, (self.experiment, self.preset, block, self.seed)

  @property
  @abc.abstractmethod
  def splits(self) -> tuple[str, ...]:
    """The names of the splits, such as 'train', 'valid', 'test' and 'ood'."""

  @abc.abstractmethod
  def _count(self, split: str) -> int:
    """Returns how many combinations a split holds."""

  @abc.abstractmethod
  def _draw(self, key: jax.Array, split: str, num_tasks: int) -> Tasks:
    """Returns tasks as JAX arrays."""

  @abc.abstractmethod
  def prediction(self, tasks: Any) -> npz.Expected:
    """Returns the required shape and dtype of predictions of tasks."""

  @abc.abstractmethod
  def _measure(self, predictions: np.ndarray, tasks: Tasks) -> dict[str, float]:
    """Returns metric -> mean."""

  @property
  def fixed_sizes(self) -> Mapping[str, int]:
    """Split -> number of its tasks, for splits that are drawn whole."""
    return {}

  @property
  def description(self) -> dict[str, Any]:
    """Information for a learner in another framework beside the arrays."""
    return {}

  @jax_settings.always
  def sample(
      self, split: str, num_tasks: int | None = None, seed: int = 0
  ) -> Tasks:
    """Returns tasks of a split.

    Task i depends only on the world, the split, the seed and i. Sampling runs
    on the CPU, so that every machine gets the same tasks, up to rounding.

    Splits of fixed size, such as SCAN's 'ood', are always drawn whole: they
    need no number B. The seed decides the tasks; at least 0 and less than 2^32.

    Raises:
      UserError: if the split is unknown or empty, or the tasks are too many.
    """
    number = len(self.shapes(split, num_tasks, seed).latents)
    drawn = on_cpu(self._draw)(self._key(split, seed), split, number)
    return Tasks(*map(np.array, drawn))

  @jax_settings.always
  def shapes(
      self, split: str, num_tasks: int | None = None, seed: int = 0
  ) -> Tasks:
    """Returns the shapes and dtypes of what `sample` returns, or raises."""
    number = self._num_tasks(split, num_tasks, seed)
    draw = functools.partial(self._draw, split=split, num_tasks=number)
    shapes = on_cpu(jax.eval_shape)(draw, self._key(split, seed))
    num_bytes = sum(math.prod(x.shape) * x.dtype.itemsize for x in shapes)
    errors.require(
        num_bytes <= MAX_BYTES,
        'num_tasks',
        num_tasks,
        f'its arrays would take {num_bytes / 2**30:.1f} GiB, and allowed are'
        f' {MAX_BYTES / 2**30:.1f}. Draw fewer tasks from each of several'
        ' seeds',
    )
    return shapes

  @jax_settings.always
  def score(self, predictions: Any, tasks: Tasks) -> dict[str, float]:
    """Returns metric -> mean over tasks, as the package evaluates its models.

    Predictions are what a learner says of the query set of `tasks`, of the
    shape and kind that `prediction(tasks)` returns: [B, Q, Y] floats, logits
    where targets are labels or actions, else values; or [B, Q, T] integers,
    tokens, where those after EOS are ignored.

    Raises:
      UserError: if predictions have another shape or kind.
    """
    if not isinstance(tasks, Tasks):
      kind = type(tasks).__name__
      rule = 'it must be what `sample` returned'
      errors.require(False, 'tasks', f'of type {kind}', rule)
    predictions = np.asarray(predictions)
    self.check_predictions(predictions, tasks, len(tasks.query_mask))
    jax_settings.warn_of_nan('predictions', predictions)
    return on_cpu(self._measure)(predictions, tasks)

  def check_predictions(
      self, predictions: np.ndarray, tasks: Tasks, num_tasks: int
  ) -> None:
    """Raises UserError unless predictions of so many tasks have their shape.

    It is that of predictions of `tasks`, which may be fewer.
    """
    wanted = self.prediction(tasks)
    shape = num_tasks, *wanted.shape[1:]
    if predictions.shape != shape or predictions.dtype.kind not in wanted.kinds:
      kind = 'floats' if 'f' in wanted.kinds else 'integers'
      raise errors.UserError(
          f'predictions are {predictions.dtype} of shape'
          f' {list(predictions.shape)}; they must be {kind} of shape'
          f' {list(shape)}.'
      )

  def _num_tasks(self, split: str, num_tasks: int | None, seed: int) -> int:
    """Returns B, or raises UserError if the tasks cannot be drawn."""
    check_seed('seed', seed)
    rule = f'{self.name} has {", ".join(self.splits)}'
    errors.require(split in self.splits, 'split', f"'{split}'", rule)
    if not self._count(split):
      raise errors.UserError(
          f"split '{split}' of {self.name} is empty: no combination is left."
      )
    size = self.fixed_sizes.get(split)
    if size and num_tasks not in (None, size):
      raise errors.UserError(
          f"num_tasks is {num_tasks}; split '{split}' of {self.name} is drawn"
          f' whole: ask for {size}, or for no number.'
      )
    rule = f'it must be a whole number from 1 to {MAX_TASKS}'
    return untrusted.whole_number(
        size or num_tasks, 'num_tasks', 1, MAX_TASKS + 1, rule
    )

  def _key(self, split: str, seed: int) -> jax.Array:
    key = randomness.stream(randomness.root_key(self.seed), 'worlds')
    return jax.random.fold_in(
        randomness.stream(key, split), check_seed('seed', seed)
    )


def check_seed(field: str, seed: int) -> int:
  """Returns a seed; raises UserError if JAX cannot make a key of it."""
  rule = 'it must be an integer, at least 0 and less than 2^32'
  return untrusted.whole_number(seed, field, 0, 2**32, rule)


def on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
  """Returns a function that runs on the CPU, in float32."""

  @functools.wraps(function)
  def call(*args: Any, **kwargs: Any) -> Any:
    with jax_settings.fixed(), jax.default_device(platforms.cpu()):
      return precision.at(precision.FLOAT32, function)(*args, **kwargs)

  return call

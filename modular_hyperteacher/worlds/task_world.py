"""Worlds of a `TaskDistribution`: teachers and grid worlds."""

import dataclasses
import functools
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.tasks import base
from modular_hyperteacher.untrusted import npz
from modular_hyperteacher.worlds import world as worlds

# Tasks drawn together; bounds memory.
_CHUNK_SIZE = 64


@dataclasses.dataclass(frozen=True, eq=False)
class TaskWorld(worlds.World):
  """A world whose tasks are examples; grid-world observations are dense."""

  distribution: base.TaskDistribution = dataclasses.field(repr=False)

  @property
  def splits(self) -> tuple[str, ...]:
    """'train', and the splits that evaluation reports."""
    return ('train', *self.distribution.evaluation_splits)

  def _count(self, split: str) -> int:
    return self.distribution.num_combinations(self.params, split)

  def _draw(self, key: jax.Array, split: str, num_tasks: int) -> worlds.Tasks:
    return self._draw_compiled(self.params, key, split, num_tasks)

  @functools.cached_property
  def _draw_compiled(self) -> Any:
    return jax.jit(self._draw_tasks, static_argnums=(2, 3))

  def _draw_tasks(
      self, params: Any, key: jax.Array, split: str, num_tasks: int
  ) -> worlds.Tasks:
    def draw_one(index: jax.Array) -> worlds.Tasks:
      task_key = jax.random.fold_in(key, index)
      task = self.distribution.sample(params, task_key, split)
      return worlds.Tasks._make(
          (*_arrays(task.support), *_arrays(task.query), task.latent)
      )

    indices = jnp.arange(num_tasks)
    return lax.map(draw_one, indices, batch_size=min(num_tasks, _CHUNK_SIZE))

  def prediction(self, tasks: Any) -> npz.Expected:
    """Returns [B, Q, Y] numbers."""
    shape = (*tasks.query_mask.shape, self.distribution.output_dim)
    return npz.Expected(shape, 'fiu')

  def _measure(
      self, predictions: np.ndarray, tasks: worlds.Tasks
  ) -> dict[str, float]:
    metrics = self._measure_compiled(
        predictions.astype(np.float32),
        tasks.query_targets,
        tasks.query_mask.astype(np.float32),
    )
    return {name: float(values.mean()) for name, values in metrics.items()}

  @functools.cached_property
  def _measure_compiled(self) -> Any:
    objective = self.distribution.objective

    def measure(
        outputs: jax.Array, targets: jax.Array, mask: jax.Array
    ) -> dict[str, jax.Array]:
      return objective.measure(outputs, base.Batch(None, targets, mask))

    return jax.jit(jax.vmap(measure))


def _arrays(batch: base.Batch) -> tuple[jax.Array, jax.Array, jax.Array]:
  return base.dense(batch.inputs), batch.targets, batch.mask > 0

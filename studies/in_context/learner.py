"""Learning across tasks: one gradient step per batch of sequences.

Source: Section 4 and Table 2 of Kobayashi et al. (2024); schedule and weight
decay as in the released code of Schug et al. (2025).
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import optax

from modular_hyperteacher import randomness
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.studies.in_context import models
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.untrusted import rules


@dataclasses.dataclass(frozen=True, kw_only=True)
class OuterConfig(outer_loop.OuterSettings):
  """How a model is trained, by AdamW."""

  warmup_fraction: float  # Share of the steps over which the rate rises from 0.
  # Share of the rate at the end of a cosine decay. As in the released code,
  # that end comes before the last step, by the length of the warm-up.
  final_fraction: rules.Share
  weight_decay: rules.NotNegative  # On all arrays that are not vectors.
  # Sequences per gradient computation; None for all of a device's. Bounds
  # memory; changes results by rounding only.
  task_chunk_size: int | None = None

  def __post_init__(self) -> None:
    super().__post_init__()
    self.require(
        # Both: rounding may reach half of the steps.
        0 <= self.warmup_fraction < 0.5
        and 2 * self.num_warmup_steps < self.num_outer_steps,
        'warmup_fraction',
        'it must be at least 0 and less than 0.5, also when rounded to steps',
    )

  @property
  def num_warmup_steps(self) -> int:
    """The number of steps over which the rate rises."""
    return round(self.warmup_fraction * self.num_outer_steps)


def learning_rate(config: OuterConfig) -> optax.Schedule:
  """Returns the rate as a function of the step."""
  return optax.warmup_cosine_decay_schedule(
      init_value=0.0,
      peak_value=config.learning_rate,
      warmup_steps=config.num_warmup_steps,
      decay_steps=config.num_outer_steps - config.num_warmup_steps,
      end_value=config.final_fraction * config.learning_rate,
  )


def make_optimizer(config: OuterConfig) -> optax.GradientTransformation:
  """Returns AdamW with clipping; counts gradients that are not finite."""
  optimizer = outer_loop.adamw(
      learning_rate(config), config.weight_decay, config.clip_norm
  )
  return optax.apply_if_finite(optimizer, max_consecutive_errors=0)


def make(
    task_distribution: tasks.TaskDistribution,
    model: models.Model,
    config: OuterConfig,
) -> outer_loop.Training:
  """Returns how a model learns from a distribution of tasks."""
  objective = task_distribution.objective

  def mean_loss(
      params: models.Params,
      task_params: Any,
      keys: jax.Array,
      step_key: jax.Array,
  ) -> tuple[jax.Array, outer_loop.Metrics]:
    # The same key for all tasks: they share a dropout mask.
    dropout_key = randomness.stream(step_key, 'dropout')

    def one_task(key: jax.Array) -> dict[str, jax.Array]:
      task = task_distribution.sample(task_params, key, 'train')
      predicted = model.apply(
          params, dropout_key, task.support, task.query.inputs, True
      )
      return objective.measure(predicted.outputs, task.query)

    metrics = jax.tree.map(jnp.mean, jax.vmap(one_task)(keys))
    return metrics['loss'], metrics

  return outer_loop.make_training(
      model.init,
      mean_loss,
      make_optimizer(config),
      config.meta_batch_size,
      config.task_chunk_size,
  )

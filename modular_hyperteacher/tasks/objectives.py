"""Losses and metrics of one task.

An objective holds the loss that both loops minimise and the metrics that the
paper reports. All take outputs `[N, Y]` and a batch of N examples, and ignore
examples with mask 0.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax.scipy import special

from modular_hyperteacher import errors
from modular_hyperteacher.tasks import base


def masked_mean(values: jax.Array, mask: jax.Array) -> jax.Array:
  """Returns the mean of values [N] over the examples with mask 1."""
  return jnp.sum(values * mask) / jnp.sum(mask)


def _check(outputs: jax.Array, batch: base.Batch) -> None:
  """Raises UserError if targets would be broadcast over outputs."""
  shape = list(batch.targets.shape)
  rule = f"it must be the outputs', {list(outputs.shape)}"
  errors.require(
      shape == list(outputs.shape), "the targets' shape", shape, rule
  )


def _error(outputs: jax.Array, batch: base.Batch) -> jax.Array:
  _check(outputs, batch)
  return outputs - batch.targets


def soft_label_divergence(outputs: jax.Array, batch: base.Batch) -> jax.Array:
  """Returns KL(targets || softmax(outputs)), in nats (Appendix C.2.2).

  Targets are distributions, [N, Y]; 0 log 0 counts as 0.
  """
  _check(outputs, batch)
  log_probs = jax.nn.log_softmax(outputs)
  divergence = jnp.sum(
      special.xlogy(batch.targets, batch.targets) - batch.targets * log_probs,
      axis=-1,
  )
  return masked_mean(divergence, batch.mask)


def is_correct(outputs: jax.Array, labels: jax.Array) -> jax.Array:
  """Returns whether the most likely label of each example is right, [N] bool.

  False if any output of the example, of [N, Y], is not finite, as after an
  inner loop that diverged: argmax treats NaN as the largest number.
  """
  return (outputs.argmax(-1) == labels) & jnp.isfinite(outputs).all(-1)


def soft_label_accuracy(outputs: jax.Array, batch: base.Batch) -> jax.Array:
  """Returns the fraction of examples with the target's most likely label."""
  correct = is_correct(outputs, batch.targets.argmax(-1))
  return masked_mean(correct.astype(jnp.float32), batch.mask)


def half_squared_error(outputs: jax.Array, batch: base.Batch) -> jax.Array:
  """Returns the summed half squared error per example (Appendix C.3.2).

  Summed over the outputs, [N, Y], and halved, as in the authors' released
  code: Y / 2 times the mean squared error.
  """
  error = 0.5 * jnp.sum(_error(outputs, batch) ** 2, axis=-1)
  return masked_mean(error, batch.mask)


def half_mean_squared_error(outputs: jax.Array, batch: base.Batch) -> jax.Array:
  """Returns half the squared error, averaged over examples and outputs.

  Source: Appendix C.1; the factor 0.5 is the released code's.
  """
  error = 0.5 * jnp.mean(_error(outputs, batch) ** 2, axis=-1)
  return masked_mean(error, batch.mask)


def relative_errors(
    outputs: jax.Array, batch: base.Batch
) -> dict[str, jax.Array]:
  """Returns half the squared error relative to the power of the targets.

  'relative_loss' is the mean of the ratio over examples whose targets are not
  all zero. 'pooled_relative_loss' is the ratio of the means over a task's
  examples, which is 0.5 for outputs that are all zero. Evaluation averages both
  over tasks; the authors take the means of the latter over all tasks, too.
  """
  error = jnp.mean(_error(outputs, batch) ** 2, axis=-1)
  power = jnp.mean(batch.targets**2, axis=-1)
  pooled = masked_mean(error, batch.mask) / masked_mean(power, batch.mask)
  ratio = error / jnp.where(power > 0, power, 1.0)
  mean = masked_mean(ratio, batch.mask * (power > 0))
  return {'relative_loss': 0.5 * mean, 'pooled_relative_loss': 0.5 * pooled}


def masked_residuals(outputs: jax.Array, batch: base.Batch) -> jax.Array:
  """Returns the errors of all outputs, flattened: [N * Y]."""
  return (_error(outputs, batch) * batch.mask[:, None]).ravel()


def action_cross_entropy(outputs: jax.Array, batch: base.Batch) -> jax.Array:
  """Returns the cross-entropy with the actions taken, in nats (App. C.4).

  Targets are actions, [N] int.
  """
  log_probs = jax.nn.log_softmax(outputs)
  taken = jnp.take_along_axis(log_probs, batch.targets[:, None], axis=-1)
  # A batch of an inner step may hold padding only, which teaches nothing.
  return -jnp.sum(taken[:, 0] * batch.mask) / jnp.maximum(batch.mask.sum(), 1)


def action_accuracies(
    outputs: jax.Array, batch: base.Batch
) -> Mapping[str, jax.Array]:
  """Returns the accuracies on a demonstration's actions.

  'accuracy' is the fraction; 'accuracy_all' is 1 if all are correct, else 0;
  'accuracy_first' and 'accuracy_last' are for the first and last unmasked
  action.
  """
  correct = is_correct(outputs, batch.targets).astype(jnp.float32)
  counts = batch.mask > 0
  last = len(counts) - 1 - counts[::-1].argmax()
  return {
      'accuracy': masked_mean(correct, batch.mask),
      'accuracy_all': jnp.where(counts, correct, 1.0).min(),
      'accuracy_first': correct[counts.argmax()],
      'accuracy_last': correct[last],
  }


SOFT_LABELS = base.Objective(
    loss=soft_label_divergence,
    metrics=lambda outputs, batch: {
        'accuracy': soft_label_accuracy(outputs, batch)
    },
)
ACTION_VALUES = base.Objective(
    loss=half_squared_error,
    metrics=lambda outputs, batch: {},
    residuals=masked_residuals,
)
REGRESSION = base.Objective(
    loss=half_mean_squared_error,
    metrics=relative_errors,
    residuals=masked_residuals,
)
ACTIONS = base.Objective(loss=action_cross_entropy, metrics=action_accuracies)

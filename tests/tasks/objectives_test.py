"""Losses and metrics by hand."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import objectives


def _actions(mask: Any) -> tuple[jax.Array, base.Batch]:
  outputs = jnp.log(
      jnp.array([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
  )
  targets = jnp.array([0, 1, 2])
  return outputs, base.Batch(None, targets, jnp.array(mask, jnp.float32))


@pytest.mark.parametrize(
    'mask, expected',
    [
        ([1, 1, 1], -math.log(0.7 * 0.3 * 0.8) / 3),
        ([1, 0, 1], -math.log(0.7 * 0.8) / 2),
        ([0, 1, 0], -math.log(0.3)),
        ([0, 0, 0], 0),
    ],
)
def test_action_cross_entropy_by_hand(mask: Any, expected: Any) -> None:
  loss = objectives.action_cross_entropy(*_actions(mask))
  np.testing.assert_allclose(loss, expected, rtol=1e-6)


@pytest.mark.parametrize(
    'mask, accuracy, every, first, last',
    [
        # Right, wrong, right.
        ([1, 1, 1], 2 / 3, 0, 1, 1),
        ([1, 1, 0], 1 / 2, 0, 1, 0),
        ([1, 0, 0], 1, 1, 1, 1),
        ([0, 1, 1], 1 / 2, 0, 0, 1),
        ([1, 0, 1], 1, 1, 1, 1),
    ],
)
def test_action_accuracies_by_hand(
    mask: Any, accuracy: float, every: float, first: float, last: float
) -> None:
  metrics = objectives.action_accuracies(*_actions(mask))
  assert {name: float(value) for name, value in metrics.items()} == {
      'accuracy': pytest.approx(accuracy),
      'accuracy_all': every,
      'accuracy_first': first,
      'accuracy_last': last,
  }


@pytest.mark.parametrize('broken', [math.nan, math.inf, -math.inf])
def test_outputs_that_are_not_finite_are_not_right(broken: float) -> None:
  outputs, batch = _actions([1, 1, 1])
  assert objectives.action_accuracies(outputs, batch)['accuracy_first'] == 1
  outputs = outputs.at[0, 0].set(broken)
  metrics = objectives.action_accuracies(outputs, batch)
  assert metrics['accuracy_first'] == metrics['accuracy_all'] == 0
  assert metrics['accuracy'] == pytest.approx(1 / 3)
  soft = batch._replace(targets=jnp.eye(3))
  accuracy = objectives.soft_label_accuracy(outputs, soft)
  assert accuracy == pytest.approx(1 / 3)


def test_half_squared_error_is_2_5_times_the_masked_mean() -> None:
  """Spec 5.4, with five actions."""
  rng = np.random.default_rng(0)
  outputs, targets = rng.normal(size=(2, 12, 5))
  mask = rng.integers(0, 2, 12)
  error = ((outputs - targets) ** 2)[mask == 1].mean()
  batch = base.Batch(None, jnp.asarray(targets), jnp.asarray(mask))
  loss = objectives.half_squared_error(jnp.asarray(outputs), batch)
  np.testing.assert_allclose(loss, 2.5 * error, rtol=1e-5)


def _regression() -> tuple[jax.Array, base.Batch]:
  """Four examples of two outputs: a target of zero, and one that is masked."""
  outputs = jnp.array([[2.0, 2.0], [0.0, 3.0], [2.0, 0.0], [9.0, 9.0]])
  targets = jnp.array([[2.0, 0.0], [0.0, 4.0], [0.0, 0.0], [1.0, 1.0]])
  return outputs, base.Batch(None, targets, jnp.array([1.0, 1.0, 1.0, 0.0]))


def test_relative_errors_by_hand() -> None:
  # Squared errors 4, 1, 4, summed over outputs; powers 4, 16, 0.
  errors = objectives.relative_errors(*_regression())
  assert {name: float(value) for name, value in errors.items()} == {
      'relative_loss': pytest.approx(0.5 * (4 / 4 + 1 / 16) / 2),
      'pooled_relative_loss': pytest.approx(0.5 * (4 + 1 + 4) / (4 + 16)),
  }


@pytest.mark.parametrize(
    'function',
    [
        objectives.soft_label_divergence,
        objectives.half_squared_error,
        objectives.half_mean_squared_error,
        objectives.relative_errors,
        objectives.masked_residuals,
    ],
)
def test_targets_are_not_broadcast(function: Any) -> None:
  batch = base.examples(None, jnp.ones((3, 1)))
  message = (
      r"^the targets' shape is \[3, 1\]; it must be the outputs', \[3, 2\]"
  )
  with pytest.raises(errors.UserError, match=message):
    function(jnp.ones((3, 2)), batch)


def test_residuals_by_hand() -> None:
  outputs, batch = _regression()
  residuals = objectives.masked_residuals(outputs, batch)
  assert residuals.tolist() == [0, 2, 0, -1, 2, 0, 0, 0]
  # Their squared norm is proportional to the loss: 3 examples, 2 outputs.
  loss = objectives.half_mean_squared_error(outputs, batch)
  assert float(loss) == pytest.approx(0.5 * float(residuals @ residuals) / 6)


def test_the_loss_is_what_is_minimised() -> None:
  outputs, batch = _actions([1, 1, 1])
  objective = base.Objective(
      objectives.action_cross_entropy,
      lambda outputs, batch: {'loss': jnp.zeros(()), 'one': jnp.ones(())},
  )
  measured = objective.measure(outputs, batch)
  expected = objectives.action_cross_entropy(outputs, batch)
  assert measured == {'loss': expected, 'one': 1}

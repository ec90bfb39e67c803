"""Linear decoding of latents from features, by ridge regression.

Source: Section 4 of Kobayashi et al. (2024): strength 1, fitted on tasks like
those of training. The intercept is not penalised.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

_STRENGTH = 1.0


class Weights(NamedTuple):
  """A fitted regression."""

  slope: jax.Array  # [F, M]
  mean_features: jax.Array  # [1, F]
  mean_latents: jax.Array  # [1, M]


def fit(features: jax.Array, latents: jax.Array) -> Weights:
  """Returns the ridge regression from features [N, F] to latents [N, M]."""
  mean_features, mean_latents = _mean(features), _mean(latents)
  x, z = features - mean_features, latents - mean_latents
  system = x.T @ x + _STRENGTH * jnp.eye(features.shape[1])
  slope = jnp.linalg.solve(system, x.T @ z)
  return Weights(slope, mean_features, mean_latents)


def score(
    weights: Weights, features: jax.Array, latents: jax.Array
) -> jax.Array:
  """Returns R^2, [N, F] -> [N, M], averaged over the latents that vary."""
  predicted = (features - weights.mean_features) @ weights.slope
  error = _mean((latents - weights.mean_latents - predicted) ** 2)
  variance = _mean((latents - _mean(latents)) ** 2)
  varies = variance > 0
  r2 = 1 - error / jnp.where(varies, variance, 1.0)
  return jnp.mean(r2, where=varies)


def _mean(values: jax.Array) -> jax.Array:
  return values.mean(0, keepdims=True)

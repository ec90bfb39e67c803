"""Ridge regression, as released and exact, and the R^2 of predictions.

Both minimise |features w - target|^2 + strength |w|^2, one target at a time.
"""

import jax
import jax.numpy as jnp
from jax.scipy.sparse import linalg as sparse_linalg
import numpy as np

_MAX_ITERATIONS = 10  # As released; may stop before convergence.
_TOLERANCE = 1e-5
_BLOCK = 2**14  # Features converted to float64 at a time.


def fit_by_conjugate_gradients(
    features: jax.Array, targets: jax.Array, strength: float
) -> jax.Array:
  """Returns weights [F, targets] after at most ten iterations from zero.

  Features are [N, F], targets [N, targets]. Stops early once the residual's
  norm is at most 1e-5 times that of the right side, as the authors' released
  code does. Ten iterations may end far from the solution, and then the result
  depends on rounding.
  """

  def solve(target: jax.Array) -> jax.Array:
    return sparse_linalg.cg(
        lambda u: features.T @ (features @ u) + strength * u,
        features.T @ target,
        tol=_TOLERANCE,
        maxiter=_MAX_ITERATIONS,
    )[0]

  return jax.vmap(solve, in_axes=1, out_axes=1)(targets)


def predict_exactly(
    features: np.ndarray,  # [N, F]
    targets: np.ndarray,  # [N, targets]
    new_features: np.ndarray,  # [new, F]
    strength: float,
) -> np.ndarray:
  """Returns predictions [new, targets] of the exact solution, in float64.

  Solves the dual problem, a system of size N, as there may be many more
  features than examples:

    prediction = new features^T (features features^T + strength)^-1 targets.
  """
  num = len(features)
  products = np.zeros((num + len(new_features), num))
  for start in range(0, features.shape[1], _BLOCK):
    block = slice(start, start + _BLOCK)
    known = np.asarray(features[:, block], np.float64)
    new = np.asarray(new_features[:, block], np.float64)
    products += np.concatenate([known, new]) @ known.T
  system = products[:num] + strength * np.eye(num)
  return products[num:] @ np.linalg.solve(system, np.asarray(targets, float))


def r2(
    prediction: jax.Array | np.ndarray, target: jax.Array | np.ndarray
) -> jax.Array:
  """Returns R^2 per column, [N, M] -> [M].

  At most 1; 0 for predicting the mean. NaN for a constant target, where it is
  undefined.
  """
  prediction, target = jnp.asarray(prediction), jnp.asarray(target)
  error = ((prediction - target) ** 2).sum(0)
  variation = ((target - target.mean(0, keepdims=True)) ** 2).sum(0)
  # The mean of equal numbers may differ from them by rounding.
  varies = target.max(0) > target.min(0)
  return jnp.where(varies, 1 - error / variation, jnp.nan)

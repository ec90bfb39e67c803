"""A bilevel problem whose outer gradients have a closed form.

  l_in = 1/2 phi' A phi - phi' theta,   l_out = 1/2 |phi - c|^2

with A diagonal. The free phase ends at phi*(theta) = A^-1 theta, so the outer
gradient is A^-1 (phi* - c).
"""

import numpy as np

from modular_hyperteacher.studies.outer_gradients import surrogates

CURVATURES = np.geomspace(0.05, 1.0, 20)
_draw = np.random.default_rng(3318)
THETA, C = _draw.normal(size=20), _draw.normal(size=20)


def unrolled(num_steps: int, curvatures: np.ndarray = CURVATURES) -> np.ndarray:
  """Returns the gradient through all steps, in closed form."""
  reached = (1 - (1 - curvatures) ** num_steps) / curvatures
  return reached * (reached * THETA - C)


def closed_form(
    contrast: surrogates.Contrast,
    num_free: int,
    num_last: int,
    beta: float,
    curvatures: np.ndarray = CURVATURES,
) -> np.ndarray:
  """Returns a contrastive rule's estimate, without a descent.

  A descent of T steps on curvatures A leaves (I - A)^T of the way to the
  minimum. As dL / dtheta = -phi, the estimate is -sum_k w_k phi_k / b.
  """
  free = THETA / curvatures * (1 - (1 - curvatures) ** num_free)
  estimate = np.zeros_like(curvatures)
  for multiple, weight in zip(contrast.strengths, contrast.weights):
    strength = multiple * beta
    curved, pull = curvatures + strength, THETA + strength * C
    if contrast.linear:
      curved, pull = curvatures, THETA - strength * (free - C)
    scale = 1 + strength if contrast.rescaled else 1.0
    # Where a negative nudge takes all curvature, every step adds the pull.
    with np.errstate(divide='ignore', invalid='ignore'):
      share = (1 - (1 - curved / scale) ** num_last) / (curved / scale)
    share = np.where(curved == 0, num_last, share)
    end = free + share * (pull - curved * free) / scale
    if multiple == 0 and not contrast.control:
      end = free
    estimate -= weight * end / beta
  return estimate


def exact(curvatures: np.ndarray = CURVATURES) -> np.ndarray:
  """Returns the gradient at the inner minimum, in closed form."""
  return (THETA / curvatures - C) / curvatures


def compare(found: np.ndarray, true: np.ndarray) -> tuple[float, float]:
  """Returns the relative error of an estimate, and its cosine."""
  error = np.linalg.norm(found - true) / np.linalg.norm(true)
  norms = np.linalg.norm(found) * np.linalg.norm(true)
  return float(error), float(found.ravel() @ true.ravel() / norms)

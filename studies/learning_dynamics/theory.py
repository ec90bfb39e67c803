"""Linear students: which directions are learned when, in closed form.

Teacher y = x' Theta' z and student y = x' W' zhat, with white inputs x and the
latent zhat inferred to convergence. The student's modules W [M-hat, X] then
follow the gradient of the loss

  loss = tr((I - P) S) / 2,   S = Theta' E[z z'] Theta,   P = W' G^-1 W

where G = W W' never changes. If G = g I, the space that the rows of W span at
time t is that of W(0) exp(S t / g): Oja's subspace flow. README.md derives
this. Time is learning rate times steps.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from modular_hyperteacher.tasks.supports import latents

# Largest exponent of a single factor of exp(S t / g).
_MAX_EXPONENT = 10.0


def second_moment(
    masks: np.ndarray, latent_type: str, sampler: str = 'released'
) -> np.ndarray:
  """Returns E[z z'], [M, M], of tasks that draw a family uniformly.

  Of k active modules, a discrete latent has E[z_i z_j] = 1/k. A continuous one
  is z_i = (1 + w_i) / 2, w_i = s D_i, with D uniform on the simplex and
  s = T / (c + T), where T is a sum of k exponentials (`latents`). So

    E[w_i] = E[s] / k,   E[w_i w_j] = E[s^2] (1 + (i = j)) / (k (k + 1)).

  With c = 1, E[s] and E[s^2] are exponential integrals; with c = 0, s = 1.
  Masks of families [C, M] may repeat. The sampler of continuous latents is a
  name in `latents.SAMPLERS`.
  """
  total = np.zeros((masks.shape[1],) * 2)
  for mask in np.asarray(masks, float):
    k = int(mask.sum())
    equal = different = 1 / k
    if latent_type == 'continuous':
      first, second = _share_moments(k, latents.SAMPLERS[sampler])
      mean, product = first / k, second / (k * (k + 1))
      equal = (1 + 2 * mean + 2 * product) / 4
      different = (1 + 2 * mean + product) / 4
    total += different * np.outer(mask, mask)
    total += (equal - different) * np.diag(mask)
  return total / len(masks)


def _share_moments(k: int, constant: float) -> tuple[float, float]:
  """Returns E[s] and E[s^2] of s = T / (constant + T), T of Gamma(k, 1)."""
  if not constant:
    return 1.0, 1.0
  # E[1 / (c + T)] = e^c E_k(c); its derivative by c gives the square's.
  scale = np.exp(constant)
  inverse = scale * special.expn(k, constant)
  square = scale * special.expn(k - 1, constant) - inverse
  first = 1 - constant * inverse
  return first, 1 - 2 * constant * inverse + constant**2 * square


def uniform_eigenvalues(
    num_modules: int, num_active: int
) -> tuple[float, float]:
  """Returns the largest and smallest eigenvalue of E[z z'].

  Of discrete latents at unit norm, uniform over all sets of K of M modules:
  K / M once, along the mean, and (M - K) / (M (M - 1)) for the M - 1 directions
  in which modules differ.
  """
  m, k = num_modules, num_active
  return k / m, (m - k) / (m * (m - 1)) if m > 1 else 1.0


def smallest_eigenvalue(num_modules: int, max_active: int) -> float:
  """Returns the same for sets of up to K of M modules, all equally likely."""
  active = np.arange(1, max_active + 1)
  counts: Any = special.comb(num_modules, active)
  smallest = [uniform_eigenvalues(num_modules, int(k))[1] for k in active]
  return float(counts @ smallest / counts.sum())


def mean_time(vector: np.ndarray, moment: np.ndarray) -> float:
  """Returns v' C^-1 v / v' v, the mean time to learn a direction of latents.

  A direction with eigenvalue l takes a time that goes as 1 / l; a vector has
  shares in several, over which this is the mean. Infinite if C = E[z z'] is
  singular. v is a unit vector for a module, a latent for a family.
  """
  eigenvalues, directions = np.linalg.eigh(moment)
  if eigenvalues[0] < 1e-12 * eigenvalues[-1]:
    return float('inf')
  shares = (directions.T @ vector) ** 2 / (vector @ vector)
  return float(shares @ (1 / eigenvalues))


def drive(teacher: np.ndarray, moment: np.ndarray) -> np.ndarray:
  """Returns S = Theta' E[z z'] Theta, [X, X], of a teacher Theta [M, X]."""
  return teacher.T @ moment @ teacher


def orthonormal_rows(rows: np.ndarray) -> np.ndarray:
  """Returns an orthonormal basis, [M-hat, X], of the space of rows."""
  return np.linalg.qr(rows.T)[0].T


def row_spaces(
    start: np.ndarray, drive_: np.ndarray, times: Sequence[float], scale: float
) -> np.ndarray:
  """Returns orthonormal bases of the closed form, [times, M-hat, X].

  Those of W(0) exp(S t / g). The exponential is applied in factors, with a new
  basis after each, as its columns would differ by more than the precision. Rows
  of W(0) are orthogonal and have the square norm g, `scale`. Times do not
  decrease, from 0 on.
  """
  eigenvalues, directions = np.linalg.eigh(drive_)
  basis, now = orthonormal_rows(start), 0.0
  bases = []
  for time in times:
    exponents = eigenvalues * (time - now) / scale
    number = max(int(np.ceil(exponents.max() / _MAX_EXPONENT)), 1)
    factor = directions * np.exp(exponents / number) @ directions.T
    for _ in range(number):
      basis = orthonormal_rows(basis @ factor)
    bases.append(basis)
    now = time
  return np.stack(bases)


def loss(drive_: np.ndarray, basis: np.ndarray) -> float:
  """Returns tr((I - P) S) / 2 of an orthonormal basis [M-hat, X]."""
  return float(np.trace(drive_) - np.sum((basis @ drive_) * basis)) / 2


def unlearned(directions: np.ndarray, basis: np.ndarray) -> np.ndarray:
  """Returns e' (I - P) e of every direction, [X, n] -> [n].

  Directions are columns of unit norm, such as eigenvectors of S; the basis
  [M-hat, X] is orthonormal.
  """
  return 1 - ((basis @ directions) ** 2).sum(0)

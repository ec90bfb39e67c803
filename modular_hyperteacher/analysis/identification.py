"""Are the student's modules an invertible linear map of the teacher's?

An independent check of what module alignment measures. By Theorem 1, a student
with zero error satisfies, for some permutation sigma of its hidden units and a
scale c_k of each,

  P[:, m] . student_modules[:, :, sigma(k)] = c_k teacher_modules[m, :, k]

for all modules m, where P maps the teacher's latents to the student's. P is
fitted by least squares between latents, the permutation by optimal assignment,
the scales by least squares between weights. The rest is the residual.

Source: Section 3.2, Appendix A.2.
"""

from typing import NamedTuple

import numpy as np
from scipy import optimize


class Identification(NamedTuple):
  """How the student's units correspond to the teacher's."""

  permutation: np.ndarray  # [H], which student's unit matches each teacher's
  scales: np.ndarray  # [H], c_k; negative for a unit that is flipped
  residual: float  # squared error relative to the teacher's power; 0 is exact
  fraction_flipped: float  # the share of the teacher's units with c_k < 0


def fit_latent_map(
    latents: np.ndarray, student_latents: np.ndarray
) -> np.ndarray:
  """Returns P [M-hat, M] of the least-squares fit `zhat ~ P z`, in float64.

  The teacher's latents are [tasks, M], the student's [tasks, M-hat]. Alignment
  regresses in the other direction, with a penalty, and inverts the result. This
  fit does neither, so the two measures do not share errors.
  """
  solution = np.linalg.lstsq(
      np.asarray(latents, np.float64),
      np.asarray(student_latents, np.float64),
      rcond=None,
  )
  return solution[0].T


def identify(
    teacher_modules: np.ndarray,  # [M, X, H]
    student_modules: np.ndarray,  # [M-hat, X, H-hat], H-hat at least H
    latent_map: np.ndarray,  # P, [M-hat, M]
    weights: np.ndarray | None = None,  # [H], not negative
) -> Identification:
  """Matches the student's hidden units to the teacher's, one to one.

  Teacher's units count equally in the residual, or by `weights`: a student with
  a small error need not recover a unit whose readout is small.

  Raises:
    ValueError: if the student has fewer hidden units than the teacher.
  """
  num_units = teacher_modules.shape[-1]
  if student_modules.shape[-1] < num_units:
    raise ValueError(
        f'The student has {student_modules.shape[-1]} hidden units; it needs at'
        f' least the {num_units} of the teacher.'
    )
  aligned = np.einsum('jm,jxk->mxk', latent_map, student_modules)
  teacher = teacher_modules.reshape(-1, num_units).astype(np.float64)
  student = aligned.reshape(-1, aligned.shape[-1]).astype(np.float64)
  overlap = teacher.T @ student  # [H, H-hat]
  power = (student**2).sum(0)
  # How much the best scale lowers the squared error of each pair.
  explained = overlap**2 / np.where(power > 0, power, np.inf)
  weights = np.ones(num_units) if weights is None else np.asarray(weights)
  explained *= weights[:, None]
  _, permutation = optimize.linear_sum_assignment(explained, maximize=True)
  units = np.arange(num_units)
  # The student is c_k times the teacher, so this fit gives 1 / c_k.
  inverse = overlap[units, permutation] / power[permutation]
  matched = explained[units, permutation].sum()
  return Identification(
      permutation=permutation,
      scales=1 / inverse,
      residual=float(1 - matched / ((teacher**2).sum(0) * weights).sum()),
      fraction_flipped=float((inverse < 0).mean()),
  )

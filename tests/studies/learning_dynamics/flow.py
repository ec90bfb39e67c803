"""What the closed form of `theory.py` is compared with.

The same flow, integrated numerically for any G, and two more formulas of the
study's README.md.
"""

from collections.abc import Sequence

import numpy as np
from scipy import integrate as scipy_integrate


def velocity(modules: np.ndarray, drive_: np.ndarray) -> np.ndarray:
  """Returns dW/dt = G^-1 W S (I - P), [M-hat, X], for any G."""
  inverse = np.linalg.inv(modules @ modules.T)
  pull = inverse @ modules @ drive_
  return pull - pull @ modules.T @ inverse @ modules


def integrate(
    start: np.ndarray, drive_: np.ndarray, times: Sequence[float]
) -> np.ndarray:
  """Returns W at some times, [times, M-hat, X], for any G, numerically.

  Args:
    start: W(0), [M-hat, X], of full rank.
    drive_: S, [X, X].
    times: increasing, from 0.
  """
  solution = scipy_integrate.solve_ivp(
      lambda _, flat: velocity(flat.reshape(start.shape), drive_).ravel(),
      (0.0, max(times)),
      start.ravel(),
      t_eval=times,
      rtol=1e-8,
      atol=1e-10,
  )
  return solution.y.T.reshape(-1, *start.shape)


def unlearned_at(
    eigenvalues: np.ndarray, overlap: np.ndarray, time: float, scale: float
) -> np.ndarray:
  """Returns e' (I - P) e of the eigenvectors of S, without W: [r].

  With L the r eigenvalues of S that are not zero, and K = E' P(0) E the overlap
  of their eigenvectors with the student's first row space,

    E' P(t) E = (I + exp(-L t / g) (K^-1 - I) exp(-L t / g))^-1

  if the student has at least r modules. Were K diagonal, every direction would
  be a logistic curve of its own, see `time_to_share`.

  Args:
    eigenvalues: L, [r].
    overlap: K, [r, r], invertible.
    time: t.
    scale: g.
  """
  decay = np.exp(-eigenvalues * time / scale)
  rest = np.linalg.inv(overlap) - np.eye(len(overlap))
  inner = decay[:, None] * rest * decay
  return 1 - np.diag(np.linalg.inv(np.eye(len(overlap)) + inner))


def time_to_share(
    eigenvalue: float, share: float, overlap: float, scale: float
) -> float:
  """Returns when the unlearned share of a lone direction has fallen to `share`.

    share(t) = c / (c + exp(2 l t / g)),   c = 1 / overlap - 1

  so t = g log(c (1 / share - 1)) / (2 l), and 0 if it starts lower.

  Args:
    eigenvalue: l, of S.
    share: in (0, 1).
    overlap: e' P(0) e; on average M-hat / X for random modules.
    scale: g.
  """
  odds = (1 / overlap - 1) * (1 / share - 1)
  return scale * max(np.log(odds), 0.0) / (2 * eigenvalue)

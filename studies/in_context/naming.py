"""Terms of a function, or rules, named from attention's codes by a classifier.

Source: Figures 2B and 5F of Schug et al., "Attention as a Hypernetwork" (2025).
The code of a block is the vector of its heads' scores with which a token that
is predicted reads itself. For each block, a multinomial logistic regression on
standardised codes is fitted on seen combinations and scored on others by F1,
averaged over classes.

- Fuzzy logic: all contexts have the same inputs, and queries vary. Terms of a
  function are ordered. There is a classifier for each place in that order; a
  metric is the mean over places.
- sRAVEN: each predicted token has one rule, since instances are not permuted.
  One classifier names it, whichever token it is.

The paper does not name the average, the regularisation or the tasks: we take
the macro average, an L2 penalty of strength 1 on the weights, and all
evaluation tasks.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from scipy import optimize
from scipy import special

from modular_hyperteacher.learning import programs
from modular_hyperteacher.studies.in_context import fuzzy_logic
from modular_hyperteacher.studies.in_context import sraven

_STRENGTH = 1.0


class Naming(NamedTuple):
  """What is named, and with which tasks."""

  what: str  # Metrics begin with it.
  # Splits whose codes are kept: classifiers are fitted on the first and scored
  # on the others.
  kept: tuple[str, ...]

  @property
  def scored(self) -> tuple[str, ...]:
    """Splits that have metrics."""
    return self.kept[1:]

  @property
  def majority(self) -> str:
    """The metric of always naming the class that is fitted most often."""
    return f'{self.what}_f1_majority'

  def metric(self, block: int | str) -> str:
    """Returns the metric of a block's codes."""
    return f'{self.what}_f1_block_{block}'

  def num_blocks(self, frame: pd.DataFrame) -> int:
    """Returns the number of blocks whose codes were read; at least 1."""
    start = self.metric('')
    metrics = [m for m in set(frame['metric']) if m.startswith(start)]
    return 1 + max((int(m.removeprefix(start)) for m in metrics), default=0)


TERMS = Naming('term', tuple(fuzzy_logic.FIXED_CONTEXT))
RULES = Naming('rule', tuple(sraven.UNPERMUTED))


def make_analyse(naming: Naming, splits: Sequence[str]) -> programs.AnalyseSeed:
  """Returns the analysis of codes [kept splits, tasks, ..., blocks, A].

  Its metrics: F1 of every block, and `naming.majority`. Evaluation latents
  [splits, tasks, L, M] have a 1 for each class that is present, and are 0
  elsewhere. For L > 1, a task has L codes, [tasks, L, blocks, A].
  """
  slots = [splits.index(split) for split in naming.kept]

  def analyse(
      drawn: programs.SeedTasks, root: jax.Array, meta_params: Any, codes: Any
  ) -> dict[str, dict[str, float]]:
    del root, meta_params
    present = np.asarray(drawn.evaluation_latents)[slots]
    return measure(
        naming,
        np.asarray(codes, float).reshape(len(slots), -1, *codes.shape[-2:]),
        present.reshape(len(slots), -1, present.shape[-1]),
    )

  return analyse


def measure(
    naming: Naming, codes: np.ndarray, latents: np.ndarray
) -> dict[str, dict[str, float]]:
  """Returns split -> metric -> value of one seed.

  Codes are [kept splits, tasks, blocks, A], latents [kept splits, tasks, M].
  """
  labels = name_classes(latents)
  num_classes, num_places = latents.shape[-1], labels.shape[-1]
  by_split: dict[str, dict[str, float]] = {split: {} for split in naming.scored}
  for block in range(codes.shape[2]):
    x = codes[:, :, block]
    if not np.isfinite(x).all():  # The seed diverged.
      for split in naming.scored:
        by_split[split][naming.metric(block)] = np.nan
      continue
    x = (x - x[0].mean(0)) / np.maximum(x[0].std(0), 1e-12)
    weights = [
        fit(x[0], labels[0, :, place], num_classes)
        for place in range(num_places)
    ]
    for index, split in enumerate(naming.scored, start=1):
      scores = [
          macro_f1(labels[index, :, place], predict(w, x[index]))
          for place, w in enumerate(weights)
      ]
      by_split[split][naming.metric(block)] = float(np.mean(scores))
  for index, split in enumerate(naming.scored, start=1):
    scores = [
        macro_f1(truth, np.full_like(truth, np.bincount(seen).argmax()))
        for seen, truth in zip(labels[0].T, labels[index].T)
    ]
    by_split[split][naming.majority] = float(np.mean(scores))
  return by_split


def name_classes(latents: np.ndarray) -> np.ndarray:
  """Returns what is present, [..., K] in ascending order, in [..., M]."""
  return np.nonzero(latents)[-1].reshape(*latents.shape[:-1], -1)


def fit(x: np.ndarray, labels: np.ndarray, num_classes: int) -> np.ndarray:
  """Returns the weights [F + 1, C] of a logistic regression, intercepts last.

  Features [N, F] are standardised, labels [N] below C. Classes without an
  example are never predicted.
  """
  extended = np.pad(x, ((0, 0), (0, 1)), constant_values=1.0)
  targets = np.eye(num_classes)[labels]
  seen = targets.any(0)

  def loss_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
    weights = flat.reshape(extended.shape[1], -1)
    logits = extended @ weights
    log_likelihood = special.log_softmax(logits, axis=1)
    penalised = weights.copy()
    penalised[-1] = 0
    loss = -np.sum(targets[:, seen] * log_likelihood)
    loss += _STRENGTH / 2 * np.sum(penalised**2)
    gradient = extended.T @ (np.exp(log_likelihood) - targets[:, seen])
    return loss, (gradient + _STRENGTH * penalised).ravel()

  start = np.zeros(extended.shape[1] * np.count_nonzero(seen))
  best = optimize.minimize(
      loss_and_gradient,
      start,
      jac=True,
      method='L-BFGS-B',
      options={'maxiter': 1000},
  )
  weights = np.zeros((extended.shape[1], num_classes))
  weights[-1] = -np.inf
  weights[:, seen] = best.x.reshape(extended.shape[1], -1)
  return weights


def predict(weights: np.ndarray, x: np.ndarray) -> np.ndarray:
  """Returns the most probable class of every row of x [N, F]."""
  return (x @ weights[:-1] + weights[-1]).argmax(1)


def macro_f1(truth: np.ndarray, predicted: np.ndarray) -> float:
  """Returns F1, averaged over the classes that occur or are predicted."""
  labels = np.union1d(truth, predicted)
  is_it, is_called = truth == labels[:, None], predicted == labels[:, None]
  hits = (is_it & is_called).sum(1)
  return float(np.mean(2 * hits / (is_it.sum(1) + is_called.sum(1))))

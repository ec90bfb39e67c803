"""The interface of analyses, which measure many adapted tasks.

A metric of the query set needs one task, an analysis many at once, such as a
regression from adapted parameters to latents. It runs on the host, one seed at
a time, and its values are reported like other metrics.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.learning import programs

Metrics = Mapping[str, Mapping[str, float]]  # split -> metric -> value


class Adapted(NamedTuple):
  """The parameters of one trained seed, and those adapted to its tasks."""

  task_params: Any
  meta_params: Any
  latents: Mapping[str, np.ndarray]  # split -> [tasks, L, M]
  fast_params: Mapping[str, Any]  # split -> [tasks, ...]
  key: jax.Array  # random numbers of the analysis derive from it


class Analysis(NamedTuple):
  """A measurement, and the evaluation splits that it needs."""

  splits: tuple[str, ...]
  measure: Callable[[Adapted], Metrics]
  always: bool = False  # At every evaluation, rather than at few of them.


def is_finite(*trees: Any) -> bool:
  """Returns whether all numbers are finite; those of lost seeds are not."""
  return all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(trees))


def combine(analyses: Sequence[Analysis]) -> Analysis | None:
  """Returns one analysis that runs all of these; None if there are none."""
  if not analyses:
    return None

  def measure(adapted: Adapted) -> Metrics:
    metrics = {}
    for analysis in analyses:
      for split, split_metrics in analysis.measure(adapted).items():
        metrics[split] = {**metrics.get(split, {}), **split_metrics}
    return metrics

  splits = dict.fromkeys(split for a in analyses for split in a.splits)
  return Analysis(tuple(splits), measure, any(a.always for a in analyses))


def of_seed(
    analysis: Analysis, evaluation_splits: tuple[str, ...]
) -> programs.AnalyseSeed:
  """Returns an analysis as a function of one seed's tasks and parameters.

  It takes meta parameters and adapted fast parameters [splits, tasks, ...];
  `evaluation_splits` are all splits of evaluation, in order.
  """
  split_indices = {s: evaluation_splits.index(s) for s in analysis.splits}

  def analyse(
      drawn: programs.SeedTasks, root: jax.Array, meta_params: Any, kept: Any
  ) -> Metrics:
    latents = np.asarray(drawn.evaluation_latents)
    return analysis.measure(
        Adapted(
            drawn.task_params,
            meta_params,
            {split: latents[i] for split, i in split_indices.items()},
            {
                split: jax.tree.map(lambda x, i=i: x[i], kept)
                for i, split in enumerate(analysis.splits)
            },
            randomness.stream(root, 'analysis'),
        )
    )

  return analyse

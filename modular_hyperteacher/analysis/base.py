"""What is measured on adapted parameters, at the end of a run.

A metric of the query set needs one task; an analysis needs many at once, such
as a regression from adapted parameters to latents. It runs on the host, seed
by seed, and its numbers are reported like any other metric.
"""

from typing import Any, Callable, Mapping, NamedTuple, Sequence

import jax
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.learning import programs

Metrics = Mapping[str, Mapping[str, float]]  # split -> metric -> value


class Adapted(NamedTuple):
  """What one seed learned, and how it adapted to its evaluation tasks."""

  task_params: Any
  meta_params: Any
  latents: Mapping[str, np.ndarray]  # split -> [tasks, L, M]
  fast_params: Mapping[str, Any]  # split -> [tasks, ...]
  key: jax.Array  # For whatever an analysis draws.


class Analysis(NamedTuple):
  """A measurement, and the evaluation splits whose tasks it looks at."""

  splits: tuple[str, ...]
  measure: Callable[[Adapted], Metrics]


def combine(analyses: Sequence[Analysis]) -> Analysis | None:
  """Returns the analysis that makes all of these; None if there are none."""
  if not analyses:
    return None

  def measure(adapted):
    metrics = {}
    for analysis in analyses:
      for split, of_split in analysis.measure(adapted).items():
        metrics[split] = {**metrics.get(split, {}), **of_split}
    return metrics

  splits = dict.fromkeys(split for a in analyses for split in a.splits)
  return Analysis(tuple(splits), measure)


def over_seeds(
    analysis: Analysis,
    evaluation_splits: tuple[str, ...],
    worlds: Sequence[programs.World],
    roots: Sequence[jax.Array],
) -> Callable[[Any, Any], dict[str, dict[str, np.ndarray]]]:
  """Returns `analyse(meta_params [R, ...], adapted [R, splits, tasks, ...])`.

  It returns split -> metric -> [R]. `worlds` and `roots`, the root keys, are
  those of the seeds.
  """
  places = [evaluation_splits.index(split) for split in analysis.splits]

  def measure_seed(index, meta_params, adapted):
    world = worlds[index]
    latents = np.asarray(world.evaluation_latents)
    return analysis.measure(
        Adapted(
            world.task_params,
            jax.tree.map(lambda x: x[index], meta_params),
            {s: latents[place] for s, place in zip(analysis.splits, places)},
            {
                split: jax.tree.map(lambda x, i=i: x[index, i], adapted)
                for i, split in enumerate(analysis.splits)
            },
            randomness.stream(roots[index], 'analysis'),
        )
    )

  def analyse(meta_params, adapted):
    measured = [
        measure_seed(index, meta_params, adapted)
        for index in range(len(worlds))
    ]
    return {
        split: {
            metric: np.array([of_seed[split][metric] for of_seed in measured])
            for metric in metrics
        }
        for split, metrics in measured[0].items()
    }

  return analyse

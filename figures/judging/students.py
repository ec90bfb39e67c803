"""Which students a claim compares: every model, at every width."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import style

MODEL = comparisons.MODEL
WIDTH = 'model.hidden_dim'
SUPPORT = 'task.task_support'
_COMPOSITIONAL = {SUPPORT: 'random'}


def modular_are_better(
    frame: pd.DataFrame,
    metric: str = 'accuracy',
    rest: Mapping[str, Any] = _COMPOSITIONAL,
    others: Sequence[str] = style.MONOLITHIC,
) -> comparisons.Comparisons:
  """Tests hypernetworks against other models; compositional support."""
  return comparisons.better(frame, pairs(frame, rest, others=others), metric)


def over_supports(
    frame: pd.DataFrame, higher: str, lower: str, metric: str
) -> comparisons.Comparisons:
  """Tests whether a metric is higher with one support than with the other.

  For both hypernetworks, at every width.
  """
  for model in style.HYPERNETWORKS:
    for student in widths(frame, model, supports=(higher, lower)):
      high, low = (
          comparisons.sample(frame, {**student, SUPPORT: name}, metric=metric)
          for name in (higher, lower)
      )
      yield high > low


def widths(
    frame: pd.DataFrame,
    model: str,
    rest: Mapping[str, Any] | None = None,
    supports: Sequence[str] = (),
) -> list[dict[str, Any]]:
  """Returns a cell for every width that a model was trained with.

  A claim about a model must hold for all of its widths. With `supports`, only
  widths that were trained with each of them count.
  """
  cell = {MODEL: model, **(rest or {})}
  runs = pick.rows(frame, cell)
  trained = set(runs[WIDTH].dropna()) if WIDTH in runs else set()
  if len(trained) < 2:
    return [cell]
  common = trained.intersection(
      *(pick.rows(runs, {SUPPORT: support})[WIDTH] for support in supports)
  )
  # Without a common width, the comparisons name what was not trained.
  return [{**cell, WIDTH: width} for width in sorted(common or trained)]


def pairs(
    frame: pd.DataFrame,
    rest: Mapping[str, Any] | None = None,
    supports: Sequence[str] = (),
    others: Sequence[str] = style.MONOLITHIC,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
  """Yields all pairs of a hypernetwork's and a monolithic model's cells."""
  for modular in style.HYPERNETWORKS:
    for modular_cell in widths(frame, modular, rest, supports):
      for other in others:
        for cell in widths(frame, other, rest, supports):
          yield modular_cell, cell


def best_widths(
    frame: pd.DataFrame,
    models: Sequence[str],
    rest: Mapping[str, Any],
    metric: str = 'accuracy',
) -> pd.DataFrame:
  """Returns a metric of OOD tasks on the seeds that all models have.

  If a model has several widths, the one with the best mean counts.

  Returns:
    A row per seed, a column per model that was trained.
  """
  frame, _ = pick.select_conditions(frame, (MODEL, WIDTH, SUPPORT))
  best: Any = min if metric == 'loss' else max
  seeds = {
      model: best(
          (
              pick.values(frame, cell, 'ood', metric=metric)
              for cell in widths(frame, model, rest)
          ),
          key=lambda values: values.mean(),
      )
      for model in models
  }
  trained = {model: values for model, values in seeds.items() if len(values)}
  return pd.DataFrame(trained).dropna()

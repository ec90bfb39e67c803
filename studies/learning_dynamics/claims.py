"""Our claims on the dynamics of learning.

LD-2 to LD-6 are decided by the runs of the study's configs. We fixed them, with
all bounds and levels, before any of these was trained. LD-1 is decided by
linear students, which `simulation.py` trains; we knew them when we wrote it, as
they checked the derivation.
"""

from collections.abc import Sequence
import functools
import math

import numpy as np
import pandas as pd

from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.studies.learning_dynamics import measures
from modular_hyperteacher.studies.learning_dynamics import simulation
from modular_hyperteacher.studies.learning_dynamics import supports
from modular_hyperteacher.studies.learning_dynamics import theory

_HALF_TIME_ERROR = 0.05
# Training of the disconnected support may take at most this much longer.
_AS_FAST = 1.25
_OOD_RATIO = 10.0
_EARLY = 0.1  # Share of training.
_RANK_CORRELATION = 0.5
_EXPONENT = 0.3


def _closed_form(frame: pd.DataFrame) -> comparisons.Comparisons:
  for cell in pick.distinct(frame, simulation.CELL):
    error = comparisons.sample(frame, cell, 'test', 'error of half time')
    yield error < _HALF_TIME_ERROR


def _per_seed(
    name: str,
    samples: Sequence[comparisons.Sample],
    values: pd.Series,
    bound: float = 0.0,
) -> comparisons.Comparison:
  computed = comparisons.Computed(name, values, tuple(samples))
  return (computed > bound).across('task.sampler')


def _correlate(
    samples: Sequence[comparisons.Sample], predicted: np.ndarray
) -> pd.Series:
  """Returns the rank correlation of samples with predictions, by seed."""
  table = comparisons.by_seed(samples)
  values = [
      measures.rank_correlation(row, predicted) for row in table.to_numpy()
  ]
  return pd.Series(values, table.index, dtype=float)


def _slow_if_small(curves: pd.DataFrame) -> comparisons.Comparisons:
  runs = [run for run in supports.RUNS if supports.is_connected(run[1])]
  samples = [
      measures.steps_sample(
          curves, measures.cell(*run), 'ood', 'alignment', measures.ALIGNED
      )
      for run in runs
  ]
  predicted = np.array([-supports.smallest_eigenvalue(*run) for run in runs])
  name = 'rank correlation of steps and 1/eigenvalue'
  return [_per_seed(name, samples, _correlate(samples, predicted))]


def _fits_and_fails(curves: pd.DataFrame) -> comparisons.Comparisons:
  for kind, names in supports.COSPECTRAL.items():
    connected, disconnected = (measures.cell(kind, name) for name in names)
    first, second = (
        measures.steps_sample(
            curves, cell, 'test', measures.RELATIVE_LOSS, measures.LEARNED
        )
        for cell in (connected, disconnected)
    )
    high, low = (
        measures.sample(
            'log10 of final OOD loss',
            measures.at_share(curves, cell, 'ood', measures.RELATIVE_LOSS).map(
                math.log10
            ),
            curves,
            cell,
            'ood',
        )
        for cell in (disconnected, connected)
    )
    yield first - second > -math.log10(_AS_FAST)
    yield high - low > math.log10(_OOD_RATIO)


def _large_first(curves: pd.DataFrame) -> comparisons.Comparisons:
  samples, correlations = [], []
  for run in supports.RUNS:
    if not supports.modules_differ(*run):
      continue  # By symmetry, all modules have the same eigenvalue.
    predicted = measures.module_times(*run)
    of_run = [
        measures.steps_sample(
            curves,
            measures.cell(*run),
            'ood',
            f'decoding_r2_m{module}',
            measures.DECODED,
        )
        for module in range(len(predicted))
    ]
    samples += of_run
    correlations.append(_correlate(of_run, predicted))
  mean = pd.concat(correlations, axis=1).dropna().mean(axis=1)
  name = 'rank correlation of steps and 1/eigenvalue of modules, within runs'
  return [_per_seed(name, samples, mean)]


def _told_early(curves: pd.DataFrame) -> comparisons.Comparisons:
  early, finals = [], []
  for run in supports.RUNS:
    cell = measures.cell(*run)
    losses = [
        measures.at_share(curves, cell, s, measures.RELATIVE_LOSS, _EARLY)
        for s in ('test', 'ood')
    ]
    aligned = measures.at_share(curves, cell, 'ood', 'alignment', _EARLY)
    table = pd.concat([*map(np.log10, losses), aligned], axis=1)
    early.append(table.set_axis(range(3), axis=1))
    finals.append(
        measures.sample(
            'final alignment',
            measures.at_share(curves, cell, 'ood', 'alignment'),
            curves,
            cell,
            'ood',
        )
    )
  final = comparisons.by_seed(finals)
  name = 'rank correlation of final alignment and its forecast'
  if not len(final):
    return [_per_seed(name, finals, pd.Series(dtype=float), _RANK_CORRELATION)]
  features = np.stack([table.loc[final.index] for table in early])
  forecast = predict_left_out(features, final.to_numpy().T)
  values = pd.Series(
      [
          measures.rank_correlation(told, true)
          for told, true in zip(forecast.T, final.to_numpy())
      ],
      final.index,
  )
  return [_per_seed(name, finals, values, _RANK_CORRELATION)]


def predict_left_out(features: np.ndarray, targets: np.ndarray) -> np.ndarray:
  """Returns forecasts of a ridge regression, [runs, seeds].

  Each is of a regression on the other seeds of the other runs, which know
  neither the support nor the teacher. Features [runs, seeds, n] have unit
  variance there, and the penalty is 1.
  """
  forecast = np.full(targets.shape, np.nan)
  for run, seed in np.ndindex(targets.shape):
    known = np.delete(np.delete(features, run, 0), seed, 1)
    known = known.reshape(-1, features.shape[-1])
    values = np.delete(np.delete(targets, run, 0), seed, 1).ravel()
    if not len(values):
      continue
    centre, spread = known.mean(0), known.std(0)
    spread = np.where(spread > 0, spread, 1.0)
    scaled = (known - centre) / spread
    weights = np.linalg.solve(
        scaled.T @ scaled + np.eye(scaled.shape[1]),
        scaled.T @ (values - values.mean()),
    )
    new = (features[run, seed] - centre) / spread
    forecast[run, seed] = values.mean() + new @ weights
  return forecast


def _as_predicted(curves: pd.DataFrame) -> comparisons.Comparisons:
  (column,) = measures.CELL_MODULES
  sizes = sorted(curves[column].unique())
  if len(sizes) < 3:
    return
  samples = [
      measures.steps_sample(
          curves, {column: m}, 'test', 'loss', measures.LEVEL_MODULES
      )
      for m in sizes
  ]
  predicted = predicted_exponent(sizes, int(curves['task.max_active'].iloc[0]))
  exponent = comparisons.slope(
      'exponent of steps over M', samples, np.log10(sizes)
  )
  yield exponent > predicted - _EXPONENT
  yield -exponent > -predicted - _EXPONENT


def predicted_exponent(sizes: Sequence[int], max_active: int) -> float:
  """Returns the slope of log(1 / smallest eigenvalue) over log M."""
  times = [1 / theory.smallest_eigenvalue(m, max_active) for m in sizes]
  return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


_of_students = functools.partial(
    verdicts.ours,
    experiment=measures.EXPERIMENT,
    cell=measures.CELL,
    read=data.Library.curves,
)
CLAIMS = (
    verdicts.ours(
        'LD-1',
        'linear students follow the closed form (relative error of the time to'
        f' half the loss below {_HALF_TIME_ERROR:.0%}).',
        'ld_linear',
        _closed_form,
        experiment=simulation.EXPERIMENT,
        cell=simulation.CELL,
        read=simulation.MEASURED.read,
    ),
    _of_students(
        'LD-2',
        'in ReLU students with connected support, time to alignment'
        f' {measures.ALIGNED:g} rises with 1/(smallest eigenvalue) over'
        ' supports (rank correlation above 0).',
        'ld_times',
        _slow_if_small,
    ),
    _of_students(
        'LD-3',
        'at equal eigenvalues, disconnected support is learned as fast on'
        f' training tasks (in at most {_AS_FAST:g} times the steps) but its OOD'
        ' loss stays at ten times that of connected support.',
        'ld_collapse',
        _fits_and_fails,
    ),
    _of_students(
        'LD-4',
        'within a run, modules of larger eigenvalue are decodable earlier'
        f' (R2 of {measures.DECODED:g}; rank correlation above 0).',
        'ld_order',
        _large_first,
    ),
    verdicts.ours(
        'LD-4x',
        'LD-4 holds in runs that are evaluated every four steps (added after'
        ' LD-4 was seen).',
        'ld_order_early',
        _large_first,
        experiment=measures.EARLY,
        cell=measures.CELL,
        read=data.Library.curves,
    ),
    _of_students(
        'LD-5',
        "a run's final alignment can be told from its first tenth"
        ' (out-of-sample rank correlation over seeds and supports above'
        f' {_RANK_CORRELATION:g}).',
        'ld_collapse',
        _told_early,
    ),
    verdicts.ours(
        'LD-6',
        'more modules take more steps as the eigenvalue predicts (exponent'
        f' within {_EXPONENT:g} of the predicted one).',
        'ld_modules',
        _as_predicted,
        cell=measures.CELL_MODULES,
        read=data.Library.curves,
    ),
)

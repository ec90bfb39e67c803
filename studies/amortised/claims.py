"""Our own claims, beyond the paper: amortised inference.

We fixed them before evaluating any of their runs on OOD tasks.
"""

import functools

import pandas as pd

from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.studies.amortised import figures

# R2 that differs by less is the same.
_SAME_R2 = 0.05


def _above(
    frame: pd.DataFrame,
    higher: str,
    lower: str,
    metric: str = 'accuracy',
    bound: float = 0.0,
) -> comparisons.Comparisons:
  """Compares two ways of inference, for each hypernetwork."""
  for model in figures.MODELS:
    high, low = (
        comparisons.sample(
            frame, figures.make_cell(way, model, 'random'), metric=metric
        )
        for way in (higher, lower)
    )
    yield (high - low > bound).across('model.inner.learning_rate')


def _needs_compositional_support(
    frame: pd.DataFrame,
) -> comparisons.Comparisons:
  pairs = [
      [figures.make_cell(way, model, s) for s in model_bars.COMPOSITIONAL]
      for way in ('amortised', 'combined')
      for model in figures.MODELS
  ]
  return comparisons.better(frame, pairs)


_claim = functools.partial(verdicts.ours, figure='amortised', cell=figures.CELL)
CLAIMS = (
    _claim(
        'AM-1',
        'amortised inference reaches the OOD accuracy of gradient inference'
        f' (to within {comparisons.SAME_ACCURACY:g}) with compositional'
        ' support, for both hypernetworks.',
        compare=functools.partial(
            _above,
            higher='amortised',
            lower='gradient',
            bound=-comparisons.SAME_ACCURACY,
        ),
    ),
    _claim(
        'AM-2',
        'predicting embeddings and then adapting them by a few gradient steps'
        ' reaches a higher OOD accuracy than predicting them alone, with'
        ' compositional support, for both hypernetworks.',
        compare=functools.partial(_above, higher='combined', lower='amortised'),
    ),
    _claim(
        'AM-3',
        'the modules of OOD tasks can be decoded from predicted embeddings as'
        ' well as from those found by gradient descent (R2 to within'
        f' {_SAME_R2:g}), with compositional support, for both hypernetworks.',
        compare=functools.partial(
            _above,
            higher='amortised',
            lower='gradient',
            metric='r2',
            bound=-_SAME_R2,
        ),
    ),
    _claim(
        'AM-4',
        'with amortised inference, alone or followed by gradient steps, OOD'
        ' accuracy is also higher with compositional than with'
        ' non-compositional support, for both hypernetworks.',
        compare=_needs_compositional_support,
    ),
)

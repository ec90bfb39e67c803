"""Claims of ours, which the paper does not make: amortised inference.

Written down before any of their runs was evaluated on OOD tasks.
"""

from collections.abc import Callable

import pandas as pd

from figures.claims import comparisons
from figures.claims import verdicts
from figures.extensions import amortised

_OURS = "ours, not the paper's"
# Largest differences that count as equal. Accuracy: as in Tables A2 to A8.
_SAME_ACCURACY = 0.02
_SAME_R2 = 0.05


def _on(
    frame: pd.DataFrame,
    inference: str,
    model: str,
    support: str = 'random',
    metric: str = 'accuracy',
) -> comparisons.Sample:
  cell = amortised.make_cell(inference, model, support)
  return comparisons.sample(frame, cell, metric=metric)


def _for_both(
    compare: Callable[[str], comparisons.Comparison],
) -> list[comparisons.Comparison]:
  """Returns one effect per hypernetwork."""
  return [compare(model) for model in amortised.MODELS]


def _reaches_gradient_descent(
    frame: pd.DataFrame,
) -> list[comparisons.Comparison]:
  return _for_both(
      lambda model: comparisons.difference(
          _on(frame, 'amortised', model),
          _on(frame, 'gradient', model),
          bound=-_SAME_ACCURACY,
      )
  )


def _adapting_helps(frame: pd.DataFrame) -> list[comparisons.Comparison]:
  return _for_both(
      lambda model: comparisons.difference(
          _on(frame, 'combined', model), _on(frame, 'amortised', model)
      )
  )


def _as_decodable(frame: pd.DataFrame) -> list[comparisons.Comparison]:
  return _for_both(
      lambda model: comparisons.difference(
          _on(frame, 'amortised', model, metric='r2'),
          _on(frame, 'gradient', model, metric='r2'),
          bound=-_SAME_R2,
      )
  )


def _needs_compositional_support(
    frame: pd.DataFrame,
) -> list[comparisons.Comparison]:
  return [
      comparisons.difference(
          _on(frame, inference, model),
          _on(frame, inference, model, 'non_compositional'),
      )
      for inference in ('amortised', 'combined')
      for model in amortised.MODELS
  ]


def _claim(
    id_: str, sentence: str, compare: verdicts.Compare
) -> verdicts.Claim:
  return verdicts.Claim(
      id=id_,
      sentence=f"Ours, not the paper's: {sentence}",
      artefact=_OURS,
      experiment=amortised.EXPERIMENT,
      figure='amortised',
      cell=amortised.CELL,
      compare=compare,
  )


CLAIMS = (
    _claim(
        'AM-1',
        'amortised inference reaches the OOD accuracy of gradient inference'
        f' (to within {_SAME_ACCURACY:g}) with compositional support, for both'
        ' hypernetworks.',
        _reaches_gradient_descent,
    ),
    _claim(
        'AM-2',
        'predicting embeddings and then adapting them by a few gradient steps'
        ' reaches a higher OOD accuracy than predicting them alone, with'
        ' compositional support, for both hypernetworks.',
        _adapting_helps,
    ),
    _claim(
        'AM-3',
        'the modules of OOD tasks can be decoded from predicted embeddings as'
        ' well as from those found by gradient descent (R2 to within'
        f' {_SAME_R2:g}), with compositional support, for both hypernetworks.',
        _as_decodable,
    ),
    _claim(
        'AM-4',
        'with amortised inference, too, alone or combined, OOD accuracy is'
        ' higher with compositional than with non-compositional support, for'
        ' both hypernetworks.',
        _needs_compositional_support,
    ),
)

"""Claims on sparse-MAML: published ones on images, and ours.

The published ones (von Oswald*, Zhao* et al., 2021) are on few-shot
classification of images. The hyperteacher is another world, so each is tested
on an analogue. Without other mention they compare runs as published: SGD in the
inner loop, first-order outer gradients, compositional support. But they take
ten inner steps in place of 35.
"""

import functools
from typing import Any

import pandas as pd

from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.studies.sparse_maml import figures

_PUBLISHED = 'beyond the paper: von Oswald et al. (2021), analogue'
_CHANGE = 0.05  # Smallest change of sparsity that counts as one.
_SPREAD = 0.1


def _at(
    frame: pd.DataFrame,
    gates: str = 'binary',
    split: str = 'test',
    metric: str = 'accuracy',
    **cell: Any,
) -> comparisons.Sample:
  """Returns a metric of the variant with some gates, sparse-MAML by default."""
  of_gates = figures.cell(gates, **cell)
  return comparisons.sample(frame, of_gates, split, metric)


def _closed(frame: pd.DataFrame) -> list[comparisons.Sample]:
  """Returns closed gates' shares by layer, from the first to the readout."""
  layers = figures.layers(frame)
  return [_at(frame, metric=f'closed_{layer}') for layer in layers]


def _adapts(frame: pd.DataFrame) -> comparisons.Comparisons:
  initial = figures.cell('binary')['model.initial_sparsity']
  change = _at(frame, metric='closed') - initial
  name = 'change of the share of closed gates'
  either = comparisons.best_of(name, [change, -change])
  name = 'largest - smallest share of closed gates of a layer'
  spread = comparisons.range_of(name, _closed(frame))
  return [either > _CHANGE, spread > _SPREAD]


def _first_closes(frame: pd.DataFrame) -> comparisons.Comparisons:
  first, *_, last, _ = _closed(frame)
  return [first > last]


def _generated_open(frame: pd.DataFrame) -> comparisons.Comparisons:
  first, *generated, readout = _closed(frame)
  return [end > layer for end in (first, readout) for layer in generated]


def _sparser_is_better(frame: pd.DataFrame) -> comparisons.Comparisons:
  shares = figures.SPARSITIES
  accuracy = [_at(frame, initial_sparsity=share) for share in shares]
  name = 'rise of accuracy with the share of gates closed at first'
  return [comparisons.slope(name, accuracy, shares) > 0]


def _steps_cost_less(frame: pd.DataFrame) -> comparisons.Comparisons:
  maml, sparse = (
      _at(frame, gates, num_steps=10) - _at(frame, gates, num_steps=100)
      for gates in ('all', 'binary')
  )
  name = 'fall of MAML from 10 to 100 inner steps - that of sparse-MAML'
  return [(maml - sparse).named(name) > 0]


def _rates_close(frame: pd.DataFrame) -> comparisons.Comparisons:
  closed = _at(frame, 'rectified', metric='closed')
  gain = _at(frame, 'rectified') - _at(frame, 'binary')
  return [closed > 0.1, gain > -comparisons.SAME_ACCURACY]


def _not_modular(frame: pd.DataFrame) -> comparisons.Comparisons:
  for model in style.HYPERNETWORKS:
    modular = comparisons.sample(frame, figures.figure_3b_cell(model))
    for solver in ('sgd', 'adamw'):
      yield modular > _at(frame, 'binary', 'ood', solver=solver)


def _claim(
    number: int,
    sentence: str,
    compare: verdicts.Compare,
    figure: str = 'sm_accuracy',
    ours: bool = False,
) -> verdicts.Claim:
  how = 'Analogue on the hyperteacher, with ten inner steps if not stated:'
  make: Any = functools.partial(verdicts.Claim, artefact=_PUBLISHED)
  if ours:
    how, make = 'with ten inner steps,', verdicts.ours
  return make(
      f'SM-{number}',
      f'{how} {sentence}',
      figure,
      compare,
      experiment=figures.EXPERIMENT,
      cell=figures.CELL,
  )


CLAIMS = (
    _claim(
        1,
        'the share of gates that sparse-MAML closes changes during training (by'
        f' more than {_CHANGE:g}), and differs between layers (by more than'
        f' {_SPREAD:g}).',
        _adapts,
        'sm_where',
    ),
    _claim(
        2,
        'sparse-MAML closes a larger share of gates in the first layer than in'
        ' the last hidden layer.',
        _first_closes,
        'sm_where',
    ),
    _claim(
        3,
        'on seen combinations, sparse-MAML is more accurate than MAML and'
        ' ANIL with as many inner steps.',
        lambda frame: [
            _at(frame) > _at(frame, gates) for gates in ('all', 'readout')
        ],
    ),
    _claim(
        4,
        'on seen combinations, sparse-MAML is the more accurate the more gates'
        ' are closed before training.',
        _sparser_is_better,
        'sm_where',
    ),
    _claim(
        5,
        'on seen combinations, 100 inner steps in place of 10 cost sparse-MAML'
        ' less accuracy than MAML.',
        _steps_cost_less,
        'sm_steps',
    ),
    _claim(
        6,
        'learned rectified rates end at exactly zero for more than 10% of the'
        ' weights, and are as accurate as binary gates on seen combinations (to'
        f' within {comparisons.SAME_ACCURACY:g}).',
        _rates_close,
    ),
    _claim(
        7,
        'on new combinations, also of more modules than in training,'
        ' sparse-MAML is more accurate than MAML.',
        lambda frame: [
            _at(frame, 'binary', split) > _at(frame, 'all', split)
            for split in ('ood', 'ood_k4')
        ],
    ),
    _claim(
        8,
        'sparse-MAML leaves the largest share of gates open in the layer that'
        ' the teacher generates.',
        _generated_open,
        'sm_where',
        ours=True,
    ),
    _claim(
        9,
        'sparsity is not modularity: with compositional support, the OOD'
        ' accuracy of both hypernetworks exceeds that of sparse-MAML, with'
        ' either inner loop.',
        _not_modular,
        ours=True,
    ),
)

"""Claims on sparse-MAML: published ones on images, and ours.

The published ones (von Oswald*, Zhao* et al., 2021) are on few-shot
classification of images. The hyperteacher is another world, so each is tested
on an analogue. Without other mention they compare runs as published: SGD in the
inner loop, first-order outer gradients, compositional support. But they take
ten inner steps in place of 35.
"""

import pandas as pd

from modular_hyperteacher.figures.claims import comparisons
from modular_hyperteacher.figures.claims import verdicts
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.studies.sparse_maml.figures import sparse_maml

_PUBLISHED = 'beyond the paper: von Oswald et al. (2021), analogue'
_CHANGE = 0.05  # Smallest change of sparsity that counts as one.
_SPREAD = 0.1
_SAME_ACCURACY = 0.02  # As for amortised inference.
_cell = sparse_maml.cell


def _adapts(frame: pd.DataFrame) -> comparisons.Comparisons:
  samples = [
      comparisons.sample(frame, _cell('binary'), 'test', metric)
      for metric in ('closed', *_closed(frame))
  ]
  whole, *layers = samples
  change = whole.values - _cell('binary')['model.initial_sparsity']
  by_layer = comparisons.by_seed(layers)
  return [
      comparisons.Comparison(
          'change of the share of closed gates',
          comparisons.pick_on_other_seeds(pd.concat([change, -change], axis=1)),
          (whole,),
          _CHANGE,
      ),
      comparisons.Comparison(
          'largest - smallest share of closed gates of a layer',
          comparisons.spread_on_other_seeds(by_layer),
          tuple(layers),
          _SPREAD,
      ),
  ]


def _closed(frame: pd.DataFrame) -> list[str]:
  """Returns the metrics of layers, from the first to the readout."""
  return [f'closed_{layer}' for layer in sparse_maml.layers(frame)]


def _more_closed(
    frame: pd.DataFrame, more: list[str], fewer: list[str]
) -> comparisons.Comparisons:
  """Compares the shares of closed gates of layers."""
  cell = _cell('binary')
  return [
      comparisons.difference(
          comparisons.sample(frame, cell, 'test', high),
          comparisons.sample(frame, cell, 'test', low),
      )
      for high in more
      for low in fewer
  ]


def _first_closes(frame: pd.DataFrame) -> comparisons.Comparisons:
  first, *_, last, _ = _closed(frame)
  return _more_closed(frame, [first], [last])


def _generated_open(frame: pd.DataFrame) -> comparisons.Comparisons:
  first, *generated, readout = _closed(frame)
  return _more_closed(frame, [first, readout], generated)


def _above(
    frame: pd.DataFrame,
    others: tuple[str, ...],
    splits: tuple[str, ...] = ('test',),
    gates: str = 'binary',
    bound: float = 0.0,
) -> comparisons.Comparisons:
  """Compares the accuracy of one variant with others'."""
  return [
      comparisons.difference(
          comparisons.sample(frame, _cell(gates), split),
          comparisons.sample(frame, _cell(other), split),
          bound,
      )
      for other in others
      for split in splits
  ]


def _sparser_is_better(frame: pd.DataFrame) -> comparisons.Comparisons:
  samples = [
      comparisons.sample(frame, _cell('binary', initial_sparsity=share), 'test')
      for share in sparse_maml.SPARSITIES
  ]
  name = 'rise of accuracy with the share of gates closed at first'
  return [comparisons.slope(name, samples, sparse_maml.SPARSITIES)]


def _steps_cost_less(frame: pd.DataFrame) -> comparisons.Comparisons:
  samples = [
      comparisons.sample(frame, _cell(gates, num_steps=steps), 'test')
      for gates in ('all', 'binary')
      for steps in (10, 100)
  ]
  name = 'fall of MAML from 10 to 100 inner steps - that of sparse-MAML'
  return [comparisons.between(name, samples, (1, -1, -1, 1))]


def _rates_close(frame: pd.DataFrame) -> comparisons.Comparisons:
  closed = comparisons.sample(frame, _cell('rectified'), 'test', 'closed')
  return [
      comparisons.level(closed, 0.1),
      *_above(frame, ('binary',), gates='rectified', bound=-_SAME_ACCURACY),
  ]


def _not_modular(frame: pd.DataFrame) -> comparisons.Comparisons:
  pairs = [
      (sparse_maml.figure_3b_cell(model), _cell('binary', solver))
      for model in style.HYPERNETWORKS
      for solver in ('sgd', 'adamw')
  ]
  return comparisons.better(frame, pairs)


def _claim(
    number: int,
    sentence: str,
    compare: verdicts.Compare,
    figure: str = 'sm_accuracy',
    ours: bool = False,
) -> verdicts.Claim:
  source = (
      "Ours, not the paper's: with ten inner steps,"
      if ours
      else (
          'Analogue on the hyperteacher, with ten inner steps if not stated'
          ' (published: 35), of a finding on images:'
      )
  )
  return verdicts.Claim(
      id=f'SM-{number}',
      sentence=f'{source} {sentence}',
      artefact=verdicts.OURS if ours else _PUBLISHED,
      experiment=sparse_maml.EXPERIMENT,
      figure=figure,
      cell=sparse_maml.CELL,
      compare=compare,
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
        lambda frame: _above(frame, ('all', 'readout')),
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
        f' within {_SAME_ACCURACY:g}).',
        _rates_close,
    ),
    _claim(
        7,
        'on new combinations, also of more modules than in training,'
        ' sparse-MAML is more accurate than MAML.',
        lambda frame: _above(frame, ('all',), ('ood', 'ood_k4')),
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

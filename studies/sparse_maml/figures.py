"""Sparse-MAML: which weights does MAML learn to adapt, and does that help?

After von Oswald*, Zhao* et al. (2021). The variants of a network with gated
inner updates beside Figure 3B's hypernetworks; the share of closed gates in
each layer; and accuracy by the number of inner steps.
"""

from typing import Any

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style

EXPERIMENT = 'sparse_maml'
# Gates -> label, colour.
VARIANTS = {
    'readout': ('ANIL', style.COLOURS['anil']),
    'all': ('MAML', style.COLOURS['maml']),
    'body': ('BOIL', '#F0E442'),
    'binary': ('Sparse-MAML', '#009E73'),
    'rectified': ('Sparse-ReLU-MAML', '#CC79A7'),
    'rates': ('Meta-SGD', '#999999'),
}
NUM_STEPS = (5, 10, 35, 100)
SPARSITIES = (0.25, 0.5, 0.75, 0.9)
_LAYER_COLOURS = ('#0072B2', '#D55E00', '#CC79A7', '#E69F00')
CELL = (
    'model.name',
    'model.gates',
    'model.inner.solver',
    'model.inner.num_steps',
    'model.initial_sparsity',
    'task.task_support',
)
_MEASURES = {
    'test': ('test', 'accuracy'),
    'ood': ('ood', 'accuracy'),
    'ood_k4': ('ood_k4', 'accuracy'),
}


def cell(
    gates: str,
    solver: str = 'sgd',
    num_steps: int = 10,
    initial_sparsity: float = 0.5,
    task_support: str = 'random',
) -> dict[str, Any]:
  """Returns the cell of a variant; MAML with AdamW is Figure 3B's."""
  if (gates, solver) == ('all', 'adamw'):
    return figure_3b_cell('maml', task_support)
  sparsity = initial_sparsity if gates == 'binary' else None
  values = (EXPERIMENT, gates, solver, num_steps, sparsity, task_support)
  return dict(zip(CELL, values, strict=True))


def figure_3b_cell(model: str, task_support: str = 'random') -> cells.Cell:
  """Returns the cell of a model of Figure 3B."""
  values = (model, None, None, 10, None, task_support)
  return dict(zip(CELL, values, strict=True))


def layers(frame: pd.DataFrame) -> dict[str, str]:
  """Returns layer -> its name in figures, from the first to the readout.

  The teacher generates its hidden layers, all but the first.
  """
  column = 'model.num_hidden'
  num_hidden = int(frame[column].max()) if column in frame and len(frame) else 2
  generated = range(1, num_hidden)
  names = [
      f'generated {i}' if num_hidden > 2 else 'generated' for i in generated
  ]
  return {
      'linear': 'first',
      **{f'linear_{i}': name for i, name in zip(generated, names)},
      'readout': 'readout',
  }


def _bars(grid: cells.Cells) -> dict[str, list[bars.Bar]]:
  """Returns all variants and the hypernetworks, a panel per support."""

  def make_bar(
      label: str, colour: str, of: cells.Cell, adamw: cells.Cell | None = None
  ) -> bars.Bar:
    beside = stats.mean(grid.values(adamw)).beside if adamw else None
    label = label.replace('-', '-<br>')
    return grid.bar(of, label, colour, beside=beside)

  return {
      style.SUPPORT_NAMES[support]: (
          [
              make_bar(
                  label.removesuffix('-MAML').removeprefix('Sparse-'),
                  colour,
                  cell(gates, task_support=support),
                  cell(gates, 'adamw', task_support=support),
              )
              for gates, (label, colour) in VARIANTS.items()
          ]
          + [
              make_bar(
                  label, style.COLOURS[model], figure_3b_cell(model, support)
              )
              for model, label in zip(
                  style.HYPERNETWORKS, ('linear', 'non-linear')
              )
          ]
      )
      for support in model_bars.COMPOSITIONAL
  }


def draw_where(library: data.Library) -> cells.Drawn:
  """Returns the closed share of each layer over training, and its table."""
  curves = cells.select(EXPERIMENT, library.curves(EXPERIMENT), CELL)
  shown = {
      f'Sparse-MAML, {share:.0%} closed at first': cell(
          'binary', initial_sparsity=share
      )
      for share in SPARSITIES
  }
  shown['Sparse-MAML, AdamW'] = cell('binary', 'adamw')
  shown['Sparse-ReLU-MAML'] = cell('rectified')
  panels = {
      title: [
          lines.Line(
              name=name,
              colour=colour,
              seeds=curves.over_training(of, 'test', f'closed_{layer}'),
          )
          for (layer, name), colour in zip(
              layers(curves.frame).items(), _LAYER_COLOURS
          )
      ]
      for title, of in shown.items()
  }
  figure = lines.draw(
      panels,
      x_title='outer steps',
      y_title='share of closed gates',
      y_range=(0, 1),
      num_columns=3,
      caption=curves.caption(
          'Compositional support. Tasks differ in the generated layer alone.',
      ),
  )
  grid = cells.read(library, EXPERIMENT, CELL)
  closed = ['closed', *(f'closed_{layer}' for layer in layers(grid.frame))]
  measures = {metric: ('test', metric) for metric in closed}
  return figure, cells.make_table(grid, measures)


def _by_steps(grid: cells.Cells) -> dict[str, list[lines.Line]]:
  """Returns accuracy by the number of inner steps."""
  return {
      style.SPLIT_NAMES[split]: [
          lines.Line(
              *VARIANTS[gates],
              lines.by_x({
                  steps: grid.values(cell(gates, num_steps=steps), split)
                  for steps in NUM_STEPS
              }),
          )
          for gates in ('all', 'binary')
      ]
      for split in ('test', 'ood')
  }


_fields = {'experiment': EXPERIMENT, 'cell': CELL, 'measures': _MEASURES}
FIGURES = {
    'sm_accuracy': described.bar_grid(
        title='What should MAML adapt to solve new combinations?',
        panels=_bars,
        notes=(
            (
                'Inner loop: SGD, first order. Sparse, ReLU: sparse-MAML,'
                ' sparse-ReLU-MAML. Linear, nonlinear: hypernetworks of'
                ' Figure 3B.'
            ),
            (
                'With AdamW, MAML is that of Figure 3B, and the others ran on'
                ' compositional support alone.'
            ),
        ),
        y_title='OOD accuracy',
        y_range=(0, 1),
        beside_name='with AdamW, second order',
        **_fields,
    ),
    'sm_where': described.Figure(
        'Where do gates close during training?', (EXPERIMENT,), draw_where
    ),
    'sm_steps': described.line_grid(
        title='How many inner steps do sparse gates need?',
        panels=_by_steps,
        notes=('Compositional support; SGD, first order.',),
        ticks=NUM_STEPS,
        x_title='inner steps, in training and evaluation',
        y_title='accuracy',
        x_type='log',
        **_fields,
    ),
}
LEARNERS = tuple(
    learners.Learner(
        name=name,
        infers=infers,
        experiment=EXPERIMENT,
        fields=cell(gates),
        kind=learners.GRADIENTS,
    )
    for gates, name, infers in (
        ('body', 'BOIL', '10 steps, body'),
        ('binary', 'sparse-MAML', '10 steps, gated'),
        ('rates', 'Meta-SGD', '10 steps, gated'),
    )
)

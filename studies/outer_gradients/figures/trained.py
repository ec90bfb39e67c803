"""Figures of students trained by every rule."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.studies.outer_gradients import measures
from modular_hyperteacher.studies.outer_gradients.configs import cr_long
from modular_hyperteacher.studies.outer_gradients.configs import cr_training

# Panel -> model, rules, further fields of the cell.
_PANELS = {
    'Linear': ('linear_hypernetwork', cr_training.ALL, {}),
    'Nonlinear': ('nonlinear_hypernetwork', cr_training.ALL, {}),
    'MAML': ('maml', cr_training.FEW, {}),
    'ANIL': ('anil', cr_training.FEW, {}),
    'Learned strengths': (
        'linear_hypernetwork',
        cr_training.LEARNED,
        {'learn_proximal': True},
    ),
    'Constant norms': (
        'linear_hypernetwork',
        cr_training.STOPPED,
        {'stop_norm': True},
    ),
}
# T -> dash.
_DASHES = {None: 'solid', 5: 'dot', 10: 'dash', 20: 'longdash'}


def _bars(found: cells.Cells) -> Mapping[str, list[bars.Bar]]:
  """Returns OOD accuracy by rule, a panel per model."""

  def bar(model: str, rule: str, more: Mapping[str, Any]) -> bars.Bar:
    where = measures.cell(model, rule, **more)
    name, colour = measures.RULES[rule]
    label = measures.shorten(name)  # Seven labels share a panel.
    return found.bar(where, label, colour, beside=found.seen(where))

  return {
      title: [bar(model, rule, more) for rule in rules]
      for title, (model, rules, more) in _PANELS.items()
  }


def draw_long(library: data.Library) -> cells.Drawn:
  """Returns OOD accuracy over CPU time, and the table of last values."""
  curves = library.curves(measures.LONG)
  found = cells.select(measures.LONG, curves, measures.CELL_LONG)
  shown, rows = [], []
  for rule, last in cr_long.RULES:
    where = measures.cell_long(rule, last)
    seeds = measures.over_time(found.frame, where, rule, last)
    name, colour = measures.RULES[rule]
    dash_name = f'T = {last}' if last else ''
    shown.append(lines.Line(name, colour, seeds, _DASHES[last], dash_name))
    final = seeds.iloc[-1] if len(seeds) else pd.Series(dtype=float)
    rows.append({
        'rule': rule,
        'num_last_steps': last,
        'cpu_seconds': seeds.index[-1] if len(seeds) else float('nan'),
        **stats.mean(final).columns('ood'),
        'num_seeds': len(final),
    })
  figure = lines.draw(
      {'': shown},
      x_title='CPU seconds of training, per seed',
      x_type='log',
      y_title='OOD accuracy',
      markers=False,
      caption=found.caption(
          'CPU time of a step, measured alone (figure cr_costs), times steps.',
          'Linear hypernetwork, 50 inner steps.',
      ),
  )
  layout.add_legend_row(figure)
  return figure, pd.DataFrame(rows)


FIGURES = {
    'cr_training': described.bar_grid(
        title='Which outer gradients train students that recompose?',
        experiment=measures.TRAINING,
        cell=measures.CELL,
        panels=_bars,
        measures={
            'test': ('test', 'accuracy'),
            'ood': ('ood', 'accuracy'),
            'test_loss': ('test', 'loss'),
            'decoding': ('ood', 'r2'),
        },
        notes=(
            (
                'Compositional support. Ten inner steps. The two panels at the'
                ' right: linear hypernetwork.'
            ),
        ),
        y_title='OOD accuracy',
        y_range=(0, 1),
        beside_name='on seen combinations',
        tick_angle=-90,
    ),
    'cr_long': described.Figure(
        'Fifty inner steps: which outer gradient is accurate soonest?',
        (measures.LONG,),
        draw_long,
    ),
}

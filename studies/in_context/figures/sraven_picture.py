"""An instance of sRAVEN: features in the order of their rules, and as shown."""

from typing import Any

import jax
import numpy as np
import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.worlds import sampled
from modular_hyperteacher.studies.in_context import sraven

_ORDERS = {
    'in_order': 'Features in the order of their rules',
    'shown': 'As shown: an order of features per column',
}


def draw(seed: int) -> tuple[go.Figure, pd.DataFrame]:
  """Returns nine panels, drawn twice, and a table of their features.

  The rules are a multiset that training never shows. What a learner has to
  predict stays empty.
  """
  task, key = sampled.make('sraven', seed)
  latent_key, panel_key = jax.random.split(key)
  latent = task.distribution.sample_latent(task.params, latent_key, 'ood')
  rules, num_values = latent.argmax(-1), task.distribution.input_dim
  drawn = {
      name: np.asarray(
          sraven.draw_panels(panel_key, rules, num_values, name == 'shown')
      )
      for name in _ORDERS
  }
  figure = layout.make_row(_ORDERS.values())
  for column, (name, panels) in enumerate(drawn.items(), start=1):
    values = panels.astype(float)
    text = panels.astype(str)
    if name == 'shown':
      values[2, 2], text[2, 2] = np.nan, '?'
    trace = go.Heatmap(
        z=_side_by_side(values, np.nan),
        text=_side_by_side(text, ''),
        texttemplate='%{text}',
        textfont={'size': 16},
        coloraxis='coloraxis',
        hoverinfo='skip',
    )
    figure.add_trace(trace, row=1, col=column)
  middles = np.arange(3) * (len(rules) + 1) + (len(rules) - 1) / 2
  figure.update_xaxes(
      tickvals=middles,
      ticktext=[f'column {i}' for i in (1, 2, 3)],
      showgrid=False,
  )
  figure.update_yaxes(
      tickvals=[0, 1, 2],
      ticktext=[f'row {i}' for i in (1, 2, 3)],
      autorange='reversed',
      showgrid=False,
  )
  # Only the lighter half of the scale, on which text can be read.
  scale = {'cmin': 0, 'cmax': 2 * num_values, 'colorscale': 'Mint'}
  figure.update_layout(coloraxis={**scale, 'showscale': False})
  names = [sraven.RULES[rule] for rule in rules]
  caption = [
      f'Rules: {", ".join(names)}. Sums are modulo {num_values}.',
  ]
  layout.finish(figure, caption=caption)
  rows, columns, features = np.indices(drawn['shown'].shape).reshape(3, -1)
  table = pd.DataFrame({
      'row': rows + 1,
      'column': columns + 1,
      'feature': features + 1,
      'rule': np.array(names)[features],
      **{name: panels.ravel() for name, panels in drawn.items()},
  })
  return figure, table


def _side_by_side(panels: np.ndarray, gap: Any) -> np.ndarray:
  """Returns panels [3, 3, K] as a table [3, 3 (K + 1)] with gaps."""
  padded = np.pad(panels, ((0, 0), (0, 0), (0, 1)), constant_values=gap)
  return padded.reshape(3, -1)

"""An instance of sRAVEN: features in the order of their rules, and as shown."""

from typing import cast

import jax
import numpy as np
import pandas as pd
from plotly import subplots
import plotly.graph_objects as go

from figures.plotting import layout
from modular_hyperteacher import randomness
from modular_hyperteacher import worlds
from modular_hyperteacher.tasks import sraven
from modular_hyperteacher.worlds import task_world

_ORDERS = {
    'in_order': 'Features in the order of their rules',
    'shown': 'As shown: an order of features per column',
}


def draw(seed: int, title: str) -> tuple[go.Figure, pd.DataFrame]:
  """Returns nine panels, drawn twice, and a table of their features.

  The rules are a multiset that training never shows. What a learner has to
  predict stays empty.
  """
  task = cast(task_world.TaskWorld, worlds.make('sraven', seed=seed))
  key = randomness.stream(jax.random.key(seed), 'picture')
  latent_key, panel_key = jax.random.split(key)
  latent = task.distribution.sample_latent(task.params, latent_key, 'ood')
  rules, num_values = latent.argmax(-1), task.distribution.input_dim
  drawn = {
      name: np.asarray(
          sraven.draw_panels(panel_key, rules, num_values, name == 'shown')
      )
      for name in _ORDERS
  }
  num_features = len(rules)
  figure = subplots.make_subplots(
      rows=1, cols=2, subplot_titles=list(_ORDERS.values())
  )
  # Panels stand side by side, with a gap between them.
  x = np.arange(3)[:, None] * (num_features + 1) + np.arange(num_features)
  for column, (name, panels) in enumerate(drawn.items(), start=1):
    values = panels.reshape(3, -1).astype(float)
    if name == 'shown':
      values[2, -num_features:] = np.nan
    text = [['?' if np.isnan(v) else f'{v:.0f}' for v in row] for row in values]
    figure.add_trace(
        go.Heatmap(
            x=x.ravel(),
            y=np.arange(3),
            z=values,
            coloraxis='coloraxis',
            hoverinfo='skip',
        ),
        row=1,
        col=column,
    )
    for row, column_x, label in zip(
        np.repeat(np.arange(3), x.size), np.tile(x.ravel(), 3), np.ravel(text)
    ):
      figure.add_annotation(
          x=column_x,
          y=row,
          text=label,
          showarrow=False,
          font={'size': 16},
          row=1,
          col=column,
      )
  figure.update_xaxes(
      tickvals=x.mean(1), ticktext=[f'column {i}' for i in (1, 2, 3)]
  )
  figure.update_yaxes(
      tickvals=[0, 1, 2],
      ticktext=[f'row {i}' for i in (1, 2, 3)],
      autorange='reversed',
  )
  figure.update_layout(
      coloraxis={
          'cmin': 0,
          'cmax': num_values - 1,
          'colorscale': 'Mint',
          'showscale': False,
      }
  )
  names = [sraven.RULES[rule] for rule in rules]
  caption = [
      f'Rules: {", ".join(names)}. Sums are modulo {num_values}.',
  ]
  layout.finish(figure, title=title, caption=caption)
  rows, columns, features = np.indices(drawn['shown'].shape).reshape(3, -1)
  table = pd.DataFrame({
      'row': rows + 1,
      'column': columns + 1,
      'feature': features + 1,
      'rule': np.array(names)[features],
      **{name: panels.ravel() for name, panels in drawn.items()},
  })
  return figure, table

"""Bars of a task's latent, beside the latent decoded from a model.

A linear decoder predicts the latent from the model's adapted parameters. Works
for every task distribution.
"""

import jax
import numpy as np
import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.pretrained import student as students


def draw(
    student: students.Student, split: str, key: jax.Array, title: str
) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the figure of one task of a split, and its numbers."""
  task = student.sample(split, key)
  fast_params = student.adapt(task)
  latent = np.asarray(task.latent)
  decoded = student.fit_decoder()(fast_params)
  model = student.config['model']['name']
  figure = layout.make_row(
      [f'layer {i + 1}' for i in range(len(latent))], shared_yaxes=True
  )
  for layer in range(len(latent)):
    for name, values, colour in (
        ("the task's latent", latent, style.MUTED),
        ('decoded from adapted parameters', decoded, style.COLOURS[model]),
    ):
      figure.add_trace(
          go.Bar(
              y=values[layer],
              name=name,
              marker={'color': colour},
              showlegend=not layer,
          ),
          row=1,
          col=layer + 1,
      )
  figure.update_xaxes(title_text='module', dtick=1, showgrid=False)
  figure.update_yaxes(title_text='latent', col=1)
  scores = ', '.join(
      f'{name} {float(value):.3f}'
      for name, value in student.score(fast_params, task.query).items()
  )
  caption = [f'On the query set: {scores}.']
  layout.finish(figure, title=title, caption=caption)
  index = pd.MultiIndex.from_product(
      [range(size) for size in latent.shape], names=['layer', 'module']
  )
  columns = {'latent': latent.ravel(), 'decoded': decoded.ravel()}
  return figure, pd.DataFrame(columns, index=index).reset_index()

"""A function of fuzzy logic: its terms, and the function itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.worlds import sampled
from modular_hyperteacher.studies.in_context import fuzzy_logic

_REST = 0.6  # What all but the first two variables are.
_GRID = np.linspace(0, 1, 41)


def draw(seed: int) -> tuple[go.Figure, pd.DataFrame]:
  """Returns each term and their maximum over two variables, and a table.

  The function is a new combination; all other variables are constant.
  """
  task, key = sampled.make('fuzzy_logic', seed)
  latent = task.distribution.sample_latent(task.params, key, 'ood')[0]
  num_variables = task.distribution.input_dim
  inputs = np.full((_GRID.size**2, num_variables), _REST)
  inputs[:, 0], inputs[:, 1] = map(np.ravel, np.meshgrid(_GRID, _GRID))
  masks = [jnp.zeros_like(latent).at[t].set(1) for t in jnp.nonzero(latent)[0]]
  names = [name_of(mask) for mask in masks]
  surfaces = {
      name: np.asarray(fuzzy_logic.respond(mask, jnp.asarray(inputs))[:, 0])
      for name, mask in zip([*names, 'maximum'], [*masks, latent])
  }
  figure = layout.make_row(surfaces)
  for column, values in enumerate(surfaces.values(), start=1):
    heatmap = go.Heatmap(
        x=_GRID,
        y=_GRID,
        z=values.reshape(_GRID.size, -1),
        coloraxis='coloraxis',
    )
    figure.add_trace(heatmap, row=1, col=column)
  figure.update_xaxes(title_text='x1')
  figure.update_yaxes(title_text='x2', col=1)
  figure.update_layout(coloraxis={'cmin': 0, 'cmax': 1})
  caption = [f'All other variables are {_REST}.']
  layout.finish(figure, caption=caption)
  return figure, pd.DataFrame(
      {'x1': inputs[:, 0], 'x2': inputs[:, 1], **surfaces}
  )


def name_of(mask: jax.Array) -> str:
  """Returns a term as a formula: 'x1 and not x2'."""
  bits = fuzzy_logic.term_bits(int(np.log2(len(mask))))[int(mask.argmax())]
  return ' and '.join(
      f'{"" if plain else "not "}x{i}' for i, plain in enumerate(bits, start=1)
  )

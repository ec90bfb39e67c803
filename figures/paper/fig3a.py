"""Figure 3A: one task of the hyperteacher, from modules to targets.

Shows the mask that selects modules, the modules (rows of the generator), their
sum, and the soft labels that a student sees. The default teacher is that of
Figure 3B's laptop preset, which is small enough to look at.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from plotly import subplots
import plotly.graph_objects as go

from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.worlds import sampled
from modular_hyperteacher.tasks import hyperteacher

TITLE = 'Figure 3A: what is a task of the hyperteacher?'
_NUM_DRAWN = 4  # Tasks to choose from.
_NUM_SHOWN = 12  # Examples whose targets are drawn.


def draw_task(
    seed: int, preset: str = 'laptop'
) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the figure of a task and the table of its examples' targets.

  The teacher is that of a preset of Figure 3B.
  """
  world, key = sampled.make('hyperteacher', seed, preset)
  sample = jax.jit(world.distribution.sample, static_argnums=2)
  drawn = [
      sample(world.params, task_key, 'train')
      for task_key in jax.random.split(key, _NUM_DRAWN)
  ]
  # The one that combines the most modules.
  task = max(drawn, key=lambda task: np.sum(task.latent))
  names = ('input_dim', 'output_dim', 'teacher_hidden_dim')
  sizes = [world.fields[name] for name in (*names, 'teacher_num_hidden')]
  teacher = hyperteacher.Teacher(*sizes)
  mask = np.asarray(task.latent)  # [L, M]
  # Every active module adds to the weights of every generated layer.
  modules = {}
  for layer, module in np.argwhere(mask):
    alone = jnp.zeros_like(task.latent).at[layer, module].set(1)
    name = f'module {module}'
    if len(mask) > 1:
      name += f', mask {layer + 1}'
    modules[name] = np.asarray(teacher.generate(world.params.generator, alone))
  targets = np.asarray(task.support.targets[:_NUM_SHOWN])
  figure = _figure(mask, modules, targets)
  largest = np.abs(sum(modules.values())).max()
  layers = 'layer' if len(mask) == 1 else 'layers, one per row'
  layout.finish(
      figure,
      caption=[
          (
              'The task sums its active modules into the weights of the'
              f' generated {layers} ({teacher.hidden_dim} ×'
              f' {teacher.hidden_dim});'
          ),
          (
              'a student sees inputs and soft labels of'
              f' {len(task.support.targets)} examples, never the modules.'
          ),
          (
              'Modules and weights: red is negative, blue positive, white'
              f' zero, the darkest {largest:.2f}; mask: black is active;'
          ),
          (
              'soft labels: from 0, dark blue, to 1, yellow.'
              f' Teacher of the {preset} preset, seed {seed}.'
          ),
      ],
      plot_height=120 + 270 * len(mask),
  )
  return figure, _table(targets, preset)


def _figure(
    mask: np.ndarray, modules: Mapping[str, np.ndarray], targets: np.ndarray
) -> go.Figure:
  weights = np.sum(list(modules.values()), axis=0)  # [L, fan_in, H]
  columns = {**modules, 'sum = weights': weights}
  figure = subplots.make_subplots(
      rows=len(mask),
      cols=len(columns) + 2,
      column_widths=[0.6] + [1] * len(columns) + [1],
      horizontal_spacing=0.035,
      vertical_spacing=0.08,
      subplot_titles=['mask' if len(mask) == 1 else 'masks', *columns]
      + ['soft labels'],
  )
  figure.update_annotations(font={'size': 13})
  limit = float(np.abs(weights).max())
  panels = [(1, 1, mask.T, 'Greys', 0, 1)]
  panels += [
      (row, column, layer, 'RdBu', -limit, limit)
      for column, layers in enumerate(columns.values(), start=2)
      for row, layer in enumerate(layers, start=1)
  ]
  last = len(columns) + 2
  panels.append((1, last, targets, 'Cividis', 0, 1))
  for row, column, values, scale, low, high in panels:
    trace = go.Heatmap(
        z=values,
        colorscale=scale,
        zmin=low,
        zmax=high,
        showscale=False,
        xgap=1,
        ygap=1,
        hovertemplate='row %{y}, column %{x}: %{z:.2f}<extra></extra>',
    )
    figure.add_trace(trace, row=row, col=column)
  figure.update_xaxes(showticklabels=False, ticks='', showgrid=False)
  figure.update_yaxes(
      showticklabels=False, ticks='', showgrid=False, autorange='reversed'
  )
  figure.update_xaxes(title_text='layer', row=1, col=1)
  figure.update_yaxes(
      title_text='module', showticklabels=True, dtick=1, row=1, col=1
  )
  figure.update_xaxes(title_text='to unit', row=len(mask), col=2)
  figure.update_yaxes(title_text='from unit', col=2)
  figure.update_xaxes(title_text='output', row=1, col=last)
  figure.update_yaxes(title_text='example', row=1, col=last)
  return figure


def _table(targets: np.ndarray, preset: str) -> pd.DataFrame:
  columns = {f'p(label {i})': column for i, column in enumerate(targets.T)}
  table = pd.DataFrame(columns).astype(float)
  return table.rename_axis('example').reset_index().assign(preset=preset)

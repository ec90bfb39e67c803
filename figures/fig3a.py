"""Figure 3A: one task of the hyperteacher, from modules to targets.

Drawn from the teacher itself, at the scale of Figure 3B's laptop preset, whose
teacher is small enough to be looked at: the mask that selects modules, the
modules (rows of the generator), their sum, and the soft labels that a student
sees.
"""

import jax
import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly import subplots

from figures import data
from figures import layout
from figures import reference
from modular_hyperteacher import randomness
from modular_hyperteacher.tasks import hyperteacher

TITLE = 'Figure 3A: a task of the hyperteacher'
_EXPERIMENT = 'fig3b'
_SEED = 2020
_NUM_DRAWN = 4  # Tasks, to choose one from.
_NUM_SHOWN = 12  # Examples whose targets are drawn.


def draw(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the figure and the table of the examples' targets."""
  del library  # A task, not a result.
  run = reference.described_runs(_EXPERIMENT, 'laptop')[0]
  fields = {n: v for n, v in run.config['task'].items() if n != 'name'}
  world = hyperteacher.make(**fields)
  root = randomness.root_key(_SEED, 'threefry2x32')
  params = world.init(randomness.stream(root, 'task'))
  task = _sample_richest(world, params, randomness.stream(root, 'picture'))
  teacher = hyperteacher.Teacher(
      fields['input_dim'],
      fields['output_dim'],
      fields['teacher_hidden_dim'],
      fields['teacher_num_hidden'],
  )
  mask = np.asarray(task.latent)  # [L, M]
  active = np.flatnonzero(mask)
  modules = [
      np.asarray(teacher.generate(params.generator, row))[0]
      for row in np.eye(mask.size, dtype=np.float32)[active]
  ]
  targets = np.asarray(task.support.targets[:_NUM_SHOWN])
  figure = _figure(mask, active, modules, targets)
  layout.finish(
      figure,
      title=TITLE,
      caption=[
          'The task sums its active modules into the weights of the generated'
          f' layer ({teacher.hidden_dim} × {teacher.hidden_dim});',
          'a student sees inputs and soft labels of'
          f' {len(task.support.targets)} examples, never the modules.',
          'Modules and weights: red is negative, blue positive, white zero, the'
          f' darkest {np.abs(sum(modules)).max():.2f}; mask: black is active;',
          'soft labels: from 0, dark blue, to 1, yellow.'
          f' Teacher of the laptop preset, seed {_SEED}.',
      ],
  )
  return figure, _table(targets)


def _sample_richest(world, params, key):
  """Returns the training task of some that combines the most modules."""
  sample = jax.jit(world.sample, static_argnums=2)
  drawn = [
      sample(params, task_key, 'train')
      for task_key in jax.random.split(key, _NUM_DRAWN)
  ]
  return max(drawn, key=lambda task: np.sum(task.latent))


def _figure(mask, active, modules, targets):
  names = [f'module {index}' for index in active]
  figure = subplots.make_subplots(
      rows=1,
      cols=len(modules) + 3,
      column_widths=[0.6] + [1] * (len(modules) + 1) + [1],
      horizontal_spacing=0.035,
      subplot_titles=['mask', *names, 'sum = weights', 'soft labels'],
  )
  figure.update_annotations(font={'size': 13})
  limit = float(np.abs(sum(modules)).max())
  panels = [(mask.T, 'Greys', 0, 1)]
  panels += [(w, 'RdBu', -limit, limit) for w in (*modules, sum(modules))]
  panels += [(targets, 'Cividis', 0, 1)]
  for column, (values, scale, low, high) in enumerate(panels, start=1):
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
    figure.add_trace(trace, row=1, col=column)
  figure.update_xaxes(showticklabels=False, ticks='', showgrid=False)
  figure.update_yaxes(
      showticklabels=False, ticks='', showgrid=False, autorange='reversed'
  )
  figure.update_xaxes(title_text='layer', col=1)
  figure.update_yaxes(title_text='module', showticklabels=True, dtick=1, col=1)
  figure.update_xaxes(title_text='to unit', col=2)
  figure.update_yaxes(title_text='from unit', col=2)
  figure.update_xaxes(title_text='output', col=len(panels))
  figure.update_yaxes(title_text='example', col=len(panels))
  return figure


def _table(targets):
  columns = {f'p(label {i})': column for i, column in enumerate(targets.T)}
  table = pd.DataFrame(columns).astype(float)
  return table.rename_axis('example').reset_index().assign(preset='laptop')

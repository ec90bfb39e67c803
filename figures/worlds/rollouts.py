"""What a trained model does in a task, after it has adapted to it.

In a grid world it acts greedily in a fresh instance: it takes the action with
the largest output. The optimal agent (left) and the model (right) act in the
same instance. In any other task, its latent is drawn beside the one that a
linear decoder predicts from the model's adapted parameters.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.analysis import acting
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import pictures
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.figures.worlds import gridworld_pictures
from modular_hyperteacher.models import base as models
from modular_hyperteacher.pretrained import student as students
from modular_hyperteacher.tasks.gridworlds import goals
from modular_hyperteacher.tasks.gridworlds import preferences


def draw_goals(
    student: students.Student, split: str, key: jax.Array
) -> cells.Drawn:
  """Returns both paths to a goal, and the table of their cells."""
  task_key, instance_key = jax.random.split(key)
  task = student.sample(split, task_key)
  params, factors = student.task_params, task.latent.argmax(-1)
  instance = goals.draw_instance(params, instance_key, factors)
  policy = _policy(student, student.adapt(task))
  visited, _, rewards = acting.walk(params, instance, factors, policy)
  success, moves = rewards.any(), rewards.argmax()
  instance, factors = jax.tree.map(np.asarray, (instance, factors))
  entry = instance.maze, instance.target, instance.agent
  shortest = int(params.lengths[entry])
  paths = {
      'optimal': np.asarray(params.paths[entry])[: shortest + 1],
      'model': _until(np.asarray(visited), int(moves) if success else None),
  }
  name = style.MODEL_NAMES[student.config['model']['name']]
  outcome = f'{int(moves)} moves' if success else 'does not succeed'
  titles = (f'optimal: {shortest} moves', f'{name}: {outcome}')
  walls = np.asarray(params.walls)
  drawn = [
      gridworld_pictures.make_goals(text, walls, instance, path, factors)
      for text, path in zip(titles, paths.values())
  ]
  figure = pictures.draw(
      [drawn[0], _as_models(drawn[1], student)],
      caption=[
          gridworld_pictures.name_goal(factors),
          (
              'Each path ends with the interaction that the goal asks for, or'
              ' where the model first returns to a cell.'
          ),
      ],
  )
  columns = {agent: pd.Series(cells) for agent, cells in paths.items()}
  table = pd.DataFrame(columns).astype('Int64')
  return figure, table.rename_axis('move').reset_index()


def draw_preferences(
    student: students.Student, split: str, key: jax.Array
) -> cells.Drawn:
  """Returns both paths through an instance, and the table of returns."""
  task_key, instance_key = jax.random.split(key)
  task = student.sample(split, task_key)
  worth = task.latent[0] @ student.task_params.templates
  policy = _policy(student, student.adapt(task))
  instances = preferences.draw_instances(instance_key, 1)
  arrival = preferences.arrival_values(
      instances.object_cells, worth[instances.colours]
  )
  free = jnp.arange(len(preferences.FREE_CELLS))[None]
  all_left = jnp.full(free.shape, 2**preferences.NUM_OBJECTS - 1)
  values = {
      'optimal': arrival[-1, :, 0][preferences.NEXT],
      'model': policy(preferences.observe(instances, free, all_left)),
  }
  shown = {
      'optimal': preferences.demonstrate(instances, worth),
      'model': acting.follow(instances, policy),
  }
  returns = {
      agent: float(preferences.discounted_returns(instances, worth, done)[0])
      for agent, done in shown.items()
  }
  name = style.MODEL_NAMES[student.config['model']['name']]
  drawn = []
  for agent, title_start in (('optimal', 'optimal'), ('model', name)):
    instance, actions = jax.tree.map(
        lambda x: np.asarray(x)[0], (instances, shown[agent])
    )
    drawn.append(
        gridworld_pictures.make_preferences(
            f'{title_start} return: {returns[agent]:.2f}',
            instance,
            actions,
            np.asarray(values[agent]),
            np.asarray(worth),
        )
    )
  figure = pictures.draw(
      [drawn[0], _as_models(drawn[1], student)],
      caption=[
          (
              'Values of moves (arrows) and of terminating (dots) before any'
              ' object is collected. On the right: as the model predicts them.'
          ),
          (
              'Returns are discounted, over at most eight steps. The optimal'
              ' agent plans eight steps ahead at every step, so higher returns'
              ' are possible.'
          ),
      ],
  )
  return figure, pd.DataFrame(returns.items(), columns=['agent', 'return'])


WORLDS: dict[str, Callable[..., cells.Drawn]] = {
    'goals': draw_goals,
    'preferences': draw_preferences,
}


def _policy(
    student: students.Student, fast_params: models.FastParams
) -> acting.Policy:
  return lambda scenes: student.predict(fast_params, scenes)


def _until(visited: np.ndarray, num_moves: int | None) -> np.ndarray:
  """Returns a path up to a number of moves, or else to the first repetition."""
  if num_moves is None:
    _, first = np.unique(visited, return_index=True)
    num_moves = len(first)  # All cells before the first repetition are new.
  return visited[: num_moves + 1]


def _as_models(
    picture: pictures.Picture, student: students.Student
) -> pictures.Picture:
  model = student.config['model']['name']
  return picture._replace(
      path_name="the model's path", path_colour=style.COLOURS[model]
  )


def draw_latent(
    student: students.Student, split: str, key: jax.Array
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
  layout.finish(figure, caption=caption)
  index = pd.MultiIndex.from_product(
      [range(size) for size in latent.shape], names=['layer', 'module']
  )
  columns = {'latent': latent.ravel(), 'decoded': decoded.ravel()}
  return figure, pd.DataFrame(columns, index=index).reset_index()

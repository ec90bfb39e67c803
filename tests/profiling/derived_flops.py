"""The fewest floating-point operations that an outer step needs.

Counted are the products of matrices, two operations per multiply-add; all else
is of lower order. A layer's product `x W`, with weights that are adapted,
occurs in one inner step as

  forward     x W                                  1
  inner       grad of W: x^T d;  grad of x: d W^T  2
  outer       two products for each of those       6

nine in all. Where x is data (first layer), no gradient of x is ever needed:
four are left. Where x is an encoding that no fast parameter touches (ANIL's
readout), the inner loop does not need it but the outer one does: six. A query
or an encoding is a forward and a backward pass: three products per layer, two
for the first. What a linear map generates weights from (`e Theta`) is needed
forward, for the gradient of e, and twice more for each in the outer gradient:
six. A set encoder reads every support set once: a forward and a backward pass.

Observations of grid worlds are so sparse that a first layer adds up a few rows
of its weights: nothing is multiplied. A hypernetwork generates the weights of
the features that occur, or mixes what each row of its bank makes of every
example, whichever is less.
"""

import functools
from typing import Any, NamedTuple

from modular_hyperteacher.models import hypernetwork
from modular_hyperteacher.studies.meta_seq2seq import (
    build as seq2seq_experiment,
)
from modular_hyperteacher.tasks.gridworlds import goals
from modular_hyperteacher.tasks.gridworlds import preferences
from tests.studies.meta_seq2seq import derived_flops as seq2seq_flops


class _World(NamedTuple):
  """What a step's operations depend on, of a task block."""

  input_dim: int
  output_dim: int
  support: int  # Examples of a task.
  query: int
  # Features that a first layer multiplies, and those that it needs weights of.
  multiplied: int
  needed: int
  per_task: float = 0  # Operations to draw a task, and of all tasks together.
  shared: float = 0


def outer_step(config: dict[str, Any]) -> float:
  """Returns the least operations of one outer step of one seed.

  Args:
    config: a run's config.
  """
  if config['task']['name'] in seq2seq_experiment.TASKS:
    counted = _count_symbols(tuple(config['task'].items()))
    return seq2seq_flops.outer_step(config, *counted)
  if config['model']['name'] == 'modular_student':
    return config['training']['meta_batch_size'] * _theory(config)
  world = _WORLDS[config['task']['name']](config['task'])
  per_task = world.per_task + _student(world, config)
  return config['training']['meta_batch_size'] * per_task + world.shared


@functools.cache
def _count_symbols(task_items: tuple[tuple[str, Any], ...]) -> tuple[Any, ...]:
  """Returns the world of episodes of a task block, and what they hold."""
  task = dict(task_items)
  world = seq2seq_experiment.TASKS[task.pop('name')](**task)
  return world, *seq2seq_flops.count_symbols(world)


def _theory(config: dict[str, Any]) -> float:
  """Operations of one task of the theory's world."""
  task, model = config['task'], config['model']
  inputs, outputs = task['input_dim'], task['output_dim']
  num_steps = model['inner']['num_steps']
  num_modules = _num_modules(config)
  support, query = task['num_support'], task['num_query']
  teacher = task['teacher_hidden_dim'] * (inputs + outputs)
  width = model['hidden_dim']
  mix = num_modules * inputs * width  # z Theta, or back.
  forward = width * (inputs + outputs)
  outer = 2 * mix + query * (teacher + 2 * forward + width * outputs)
  if model['inner']['solver'] == 'adamw':
    drawn = support * num_steps
    inner = 2 * mix * num_steps + drawn * (teacher + 2 * forward)
  else:
    jacobian = support * num_modules * width * outputs
    normal = support * outputs * num_modules * (num_modules + 1)
    inner = support * (teacher + mix) + (num_steps + 1) * (
        mix + support * forward + jacobian + normal
    )
  generate = task['num_modules'] * inputs * task['teacher_hidden_dim']
  return 2 * (inner + outer + generate)


def _hyperteacher(task: dict[str, Any]) -> _World:
  """Targets of one task; the first layer of the reference is shared."""
  examples = task['num_support'] + task['num_query']
  reference = task['num_standardisation']
  width, hidden = task['teacher_hidden_dim'], task['teacher_num_hidden']
  fixed, generated = task['input_dim'] * width, (hidden - 1) * width * width
  if hidden == 1:
    fixed, generated = 0, task['input_dim'] * width
  num_layers = max(hidden - 1, 1)
  generate = num_layers * task['num_modules'] * generated
  per_example = generated + width * task['output_dim']
  return _World(
      task['input_dim'],
      task['output_dim'],
      task['num_support'],
      task['num_query'],
      multiplied=task['input_dim'],
      needed=task['input_dim'],
      per_task=2
      * (examples * (fixed + per_example) + reference * per_example + generate),
      shared=2 * reference * fixed,
  )


def _preferences(task: dict[str, Any]) -> _World:
  return _World(
      preferences.LAYOUT.num_features,
      preferences.NUM_ACTIONS,
      task['num_support'] * preferences.HORIZON,
      task['num_query'] * preferences.HORIZON,
      multiplied=0,
      needed=len(preferences.LAYOUT.columns),
  )


def _goals(task: dict[str, Any]) -> _World:
  steps = task['max_path_length'] + 1
  layout = goals.layout(task['grid_size'])
  return _World(
      layout.num_features,
      goals.NUM_ACTIONS,
      steps,
      steps,
      multiplied=0,
      needed=len(layout.columns),
  )


_WORLDS = {
    'hyperteacher': _hyperteacher,
    'preferences': _preferences,
    'goals': _goals,
}


def _student(world: _World, config: dict[str, Any]) -> float:
  model = config['model']
  width, support, query = model['hidden_dim'], world.support, world.query
  batch = model['inner']['batch_size'] or support
  num_steps = model['inner']['num_steps']
  first = world.multiplied * width
  middle = (model['num_hidden'] - 1) * width**2
  last = width * world.output_dim
  if model['name'] == 'anil':
    body = (support + query) * (2 * first + 3 * middle)
    readout = num_steps * batch * 6 * last + query * 3 * last
    return 2 * (body + readout)
  inner = num_steps * batch * (4 * first + 9 * (middle + last))
  outer = query * (2 * first + 3 * (middle + last))
  generated = _generators(world, config)
  return 2 * (inner + outer + generated + _encoder(world, config))


def _num_modules(config: dict[str, Any]) -> int:
  model = config['model']
  return model['num_modules'] or (
      model['modules_per_teacher_module'] * config['task']['num_modules']
  )


def _encoder(world: _World, config: dict[str, Any]) -> float:
  """Multiply-adds in predicting fast parameters, see `models.amortised`."""
  model = config['model']
  if 'encoder_hidden_dim' not in model:
    return 0
  width, queries = model['encoder_hidden_dim'], model['encoder_num_queries']
  slot_dims = [_num_modules(config)] * (model['num_hidden'] + 1)
  if 'generator_hidden_dim' not in model:
    slot_dims.append(world.output_dim)  # The linear hypernetwork's fast bias.
  first = (world.multiplied + world.output_dim) * width
  layers = (model['encoder_num_hidden'] + 1) * width**2  # Keys, values too.
  attention = 2 * len(slot_dims) * queries * width
  heads = sum((queries * width + dim) * width for dim in slot_dims)
  return world.support * (2 * first + 3 * (layers + attention)) + 3 * heads


def _generators(world: _World, config: dict[str, Any]) -> float:
  """Multiply-adds in generating weights, over all inner steps."""
  model = config['model']
  if 'num_modules' not in model:
    return 0
  num_modules = _num_modules(config)
  features = model.get('generator_hidden_dim', num_modules)
  blocks = hypernetwork.base_blocks(
      world.input_dim,
      world.output_dim,
      model['num_hidden'],
      model['hidden_dim'],
  )
  generated = sum(b.num_layers * b.size for b in blocks.values())
  generated -= blocks['input'].fan_out * world.input_dim

  def emitted(num_rows: float) -> float:
    first = world.needed
    if not world.multiplied:
      first = min(first, num_rows)
    return features * (generated + blocks['input'].fan_out * first)

  # The query needs the weights of the adapted embedding: forward, backward.
  inner = 6 * model['inner']['num_steps'] * emitted(world.support)
  return inner + 3 * emitted(world.query)

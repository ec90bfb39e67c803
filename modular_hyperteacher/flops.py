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
six.
"""

from typing import Any

from modular_hyperteacher.models import hypernetwork


def outer_step(config: dict[str, Any]) -> float:
  """Returns the least operations of one outer step of one seed.

  Args:
    config: a run's config, on the hyperteacher.
  """
  task = config['task']
  per_task = _teacher(task) + _student(config)
  shared = 2 * task['num_standardisation'] * (
      task['input_dim'] * task['teacher_hidden_dim']
  )
  return config['training']['meta_batch_size'] * per_task + shared


def _teacher(task):
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
  return 2 * (
      examples * (fixed + per_example) + reference * per_example + generate
  )


def _student(config):
  task, model = config['task'], config['model']
  sizes = (
      task['input_dim'],
      task['output_dim'],
      model['num_hidden'],
      model['hidden_dim'],
  )
  support, query = task['num_support'], task['num_query']
  batch = model['inner']['batch_size'] or support
  num_steps = model['inner']['num_steps']
  first = sizes[0] * sizes[3]
  middle = (sizes[2] - 1) * sizes[3] ** 2
  last = sizes[3] * sizes[1]
  if model['name'] == 'anil':
    body = (support + query) * (2 * first + 3 * middle)
    readout = num_steps * batch * 6 * last + query * 3 * last
    return 2 * (body + readout)
  inner = num_steps * batch * (4 * first + 9 * (middle + last))
  outer = query * (2 * first + 3 * (middle + last))
  return 2 * (inner + outer + _generators(model, task, sizes))


def _generators(model, task, sizes):
  """Multiply-adds in generating weights, over all inner steps."""
  if 'num_modules' not in model:
    return 0
  num_modules = model['num_modules'] or (
      model['modules_per_teacher_module'] * task['num_modules']
  )
  features = model.get('generator_hidden_dim', num_modules)
  blocks = hypernetwork.base_blocks(*sizes)
  generated = sum(b.num_layers * b.size for b in blocks.values())
  # The query needs the weights of the adapted embedding: forward, backward.
  return (6 * model['inner']['num_steps'] + 3) * features * generated

"""Checks what the functions of a task and of a model return.

They are checked while JAX traces them, which costs a run nothing. A wrong shape
could otherwise be broadcast, and train without a word, and a wrong type ends in
an error deep inside JAX.
"""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.experiments import checked
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks


def make_task(
    make: Callable[..., Any], name: str, fields: Mapping[str, Any]
) -> tasks.TaskDistribution:
  """Calls a task's function with the fields of its block; see `of_task`.

  Raises:
    UserError: for wrong fields, or if it returns no task distribution.
  """
  made = checked.call(make, 'task', fields, tasks.TaskDistribution)
  return of_task(name, made)


def of_task(name: str, task: tasks.TaskDistribution) -> tasks.TaskDistribution:
  """Returns a task distribution whose functions check what they return.

  Raises:
    UserError: if its objective is none. The functions raise it, too; it names
      the task, the function, what it returned and what is allowed.
  """
  what = f"task '{name}': "
  objective = task.objective
  _check_fields(what, task)

  def sample_latent(
      params: tasks.TaskParams, key: jax.Array, split: str
  ) -> jax.Array:
    latent = task.sample_latent(params, key, split)
    rule = f'it must be [L, {task.num_modules}], for layers and num_modules'
    allowed = _ndim(latent) == 2 and np.shape(latent)[1] == task.num_modules
    _require(allowed, f'{what}sample_latent', latent, rule)
    return latent

  def sample_examples(
      params: tasks.TaskParams, key: jax.Array, latent: jax.Array, split: str
  ) -> tuple[tasks.Batch, tasks.Batch]:
    sets: Any = task.sample_examples(params, key, latent, split)
    function = f'{what}sample_examples'
    _require(
        isinstance(sets, tuple | list)
        and len(sets) == 2
        and all(isinstance(batch, tasks.Batch) for batch in sets),
        function,
        sets,
        'it must be two of tasks.base.Batch, support and query set',
    )
    support, query = sets
    for batch in (support, query):
      _check_batch(function, batch, task)
    return support, query

  def check_rows(outputs: jax.Array, batch: tasks.Batch) -> None:
    # One row would be broadcast over all examples.
    number, wanted = len(outputs), len(batch.mask)
    rule = f'it must be {wanted}, one for each example'
    field = f'{what}the number of outputs'
    errors.require(number == wanted, field, number, rule)

  def loss(outputs: jax.Array, batch: tasks.Batch) -> jax.Array:
    check_rows(outputs, batch)
    value = objective.loss(outputs, batch)
    rule = 'it must be a floating-point scalar'
    allowed = _ndim(value) == 0 and _is_floating(value)
    _require(allowed, f'{what}objective.loss', value, rule)
    return value

  def metrics(
      outputs: jax.Array, batch: tasks.Batch
  ) -> Mapping[str, jax.Array]:
    check_rows(outputs, batch)
    values = objective.metrics(outputs, batch)
    _require(
        isinstance(values, Mapping)
        and all(_ndim(value) == 0 for value in values.values()),
        f'{what}objective.metrics',
        values,
        'it must map names to scalars',
    )
    return values

  return dataclasses.replace(
      task,
      objective=objective._replace(loss=loss, metrics=metrics),
      sample_latent=sample_latent,
      sample_examples=sample_examples,
  )


def of_model(
    name: str, model: models.MetaModel, output_dim: int
) -> models.MetaModel:
  """Returns a model whose functions check what they return.

  They raise UserError for parameters that have no gradient, and for outputs
  that are not [N, Y].

  Raises:
    UserError: if one of them is not a function.
  """
  what = f"model '{name}': "
  for field in ('init', 'init_fast', 'encode', 'decode'):
    _require_function(what, field, getattr(model, field))

  def check_params(function: str, params: Any) -> None:
    leaves = jax.tree.leaves(params)
    rule = 'it must be a tree of floating-point arrays, () for none'
    allowed = params is not None and all(map(_is_floating, leaves))
    _require(allowed, f'{what}{function}', params, rule)

  def init(key: jax.Array) -> models.MetaParams:
    params = model.init(key)
    check_params('init', params)
    return params

  def init_fast(meta_params: models.MetaParams) -> models.FastParams:
    params = model.init_fast(meta_params)
    check_params('init_fast', params)
    return params

  def decode(
      meta_params: models.MetaParams,
      fast_params: models.FastParams,
      encoding: Any,
  ) -> jax.Array:
    outputs = model.decode(meta_params, fast_params, encoding)
    _require(
        _ndim(outputs) == 2 and np.shape(outputs)[1] == output_dim,
        f'{what}decode',
        outputs,
        f'it must be [N, {output_dim}], the outputs of N examples',
    )
    return outputs

  return model._replace(init=init, init_fast=init_fast, decode=decode)


def _check_fields(what: str, task: tasks.TaskDistribution) -> None:
  """Checks functions and sizes before they are used."""
  objective: Any = task.objective
  errors.require(
      isinstance(objective, tasks.Objective),
      f'{what}objective',
      untrusted.shorten(objective),
      'it must be a tasks.base.Objective',
  )
  for field in ('init', 'sample_latent', 'sample_examples', 'num_combinations'):
    _require_function(what, field, getattr(task, field))
  for field in ('loss', 'metrics'):
    _require_function(f'{what}objective.', field, getattr(objective, field))
  for field in ('input_dim', 'output_dim', 'num_modules'):
    size = getattr(task, field)
    rule = 'it must be a whole number of 1 or more'
    whole = isinstance(size, int | np.integer) and size >= 1
    errors.require(whole, f'{what}{field}', untrusted.shorten(size), rule)


def _check_batch(
    function: str, batch: tasks.Batch, task: tasks.TaskDistribution
) -> None:
  """Checks the shapes of a support or query set."""
  inputs, targets, mask = batch
  _require(_ndim(mask) == 1, function, mask, 'it must be [N]', 'as mask ')
  num_examples = len(mask)
  is_plain = isinstance(inputs, jax.Array | np.ndarray)
  if is_plain and task.sequence_lengths is None:
    wanted = num_examples, task.input_dim
    rule = f'it must be {list(wanted)}, by input_dim'
    _require(inputs.shape == wanted, function, inputs, rule, 'as inputs ')
  rule = f'it must have {num_examples} rows, one for each example'
  allowed = _ndim(targets) > 0 and len(targets) == num_examples
  _require(allowed, function, targets, rule, 'as targets ')


def _ndim(value: Any) -> int:
  """Returns the number of axes; -1 for what is no array and no number."""
  return 0 if isinstance(value, int | float) else getattr(value, 'ndim', -1)


def _is_floating(leaf: Any) -> bool:
  dtype = getattr(leaf, 'dtype', None)
  return isinstance(leaf, float) or (
      dtype is not None and jnp.issubdtype(dtype, jnp.floating)
  )


def _require_function(what: str, field: str, value: Any) -> None:
  rule = 'it must be a function'
  errors.require(callable(value), f'{what}{field}', _show(value), rule)


def _require(
    allowed: bool, function: str, value: Any, rule: str, part: str = ''
) -> None:
  """Raises UserError unless what a function returns is allowed."""
  if not allowed:
    shown = jax.tree.map(_show, value, is_leaf=lambda x: x is None)
    text = shown if isinstance(shown, str) else untrusted.shorten(shown)
    raise errors.UserError(f'{function} returns {part}{text}; {rule}.')


def _show(leaf: Any) -> str:
  shape = getattr(leaf, 'shape', None)
  if shape is None:
    return untrusted.shorten(leaf)
  kind = '' if _is_floating(leaf) else f' of {leaf.dtype}'
  return f'an array {list(shape)}{kind}'

"""Checks what the functions of a task and of a model return.

They are checked while JAX traces them, which costs a run nothing. A wrong shape
could otherwise be broadcast, and train without a word.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks


def of_task(name: str, task: tasks.TaskDistribution) -> tasks.TaskDistribution:
  """Returns a task distribution whose functions check what they return.

  Raises:
    UserError: if its objective is none. The functions raise it, too; it names
      the task, the function, what it returned and what is allowed.
  """
  what = f"task '{name}': "
  objective: Any = task.objective
  errors.require(
      isinstance(objective, tasks.Objective),
      f'{what}objective',
      untrusted.shorten(objective),
      'it must be a tasks.base.Objective',
  )

  def sample_latent(
      params: tasks.TaskParams, key: jax.Array, split: str
  ) -> jax.Array:
    latent = task.sample_latent(params, key, split)
    rule = f'it must be [L, {task.num_modules}], for layers and num_modules'
    allowed = _ndim(latent) == 2 and latent.shape[1] == task.num_modules
    _require(allowed, f'{what}sample_latent', latent, rule)
    return latent

  def sample_examples(
      params: tasks.TaskParams, key: jax.Array, latent: jax.Array, split: str
  ) -> tuple[tasks.Batch, tasks.Batch]:
    sets: Any = task.sample_examples(params, key, latent, split)
    function = f'{what}sample_examples'
    _require(
        isinstance(sets, tuple)
        and len(sets) == 2
        and all(isinstance(batch, tasks.Batch) for batch in sets),
        function,
        sets,
        'it must be two tasks.base.Batch, support and query set',
    )
    for batch in sets:
      _check_batch(function, batch, task)
    return sets

  def loss(outputs: jax.Array, batch: tasks.Batch) -> jax.Array:
    value = objective.loss(outputs, batch)
    rule = 'it must be a scalar'
    _require(_ndim(value) == 0, f'{what}objective.loss', value, rule)
    return value

  def metrics(
      outputs: jax.Array, batch: tasks.Batch
  ) -> Mapping[str, jax.Array]:
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
  """Returns a model whose `decode` raises UserError for outputs not [N, Y]."""

  def decode(
      meta_params: models.MetaParams,
      fast_params: models.FastParams,
      encoding: Any,
  ) -> jax.Array:
    outputs = model.decode(meta_params, fast_params, encoding)
    _require(
        _ndim(outputs) == 2 and outputs.shape[1] == output_dim,
        f"model '{name}': decode",
        outputs,
        f'it must be [N, {output_dim}], the outputs of N examples',
    )
    return outputs

  return model._replace(decode=decode)


def _check_batch(
    function: str, batch: tasks.Batch, task: tasks.TaskDistribution
) -> None:
  """Checks the shapes of a support or query set."""
  inputs, targets, mask = batch
  _require(_ndim(mask) == 1, f'{function}, mask', mask, 'it must be [N]')
  num_examples = len(mask)
  if isinstance(inputs, jax.Array) and task.sequence_lengths is None:
    wanted = num_examples, task.input_dim
    rule = f'it must be {list(wanted)}, by input_dim'
    _require(inputs.shape == wanted, f'{function}, inputs', inputs, rule)
  rule = f'it must be {num_examples} rows, one for each example'
  rows = _ndim(targets) > 0 and len(targets) == num_examples
  _require(rows, f'{function}, targets', targets, rule)
  if jnp.issubdtype(targets.dtype, jnp.floating):
    # Outputs are [N, Y]; a single column would be broadcast over them.
    columns = targets.shape[1] if targets.ndim == 2 else 0
    allowed = targets.ndim == 2 and (columns != 1 or task.output_dim == 1)
    wanted = num_examples, task.output_dim
    rule = f'it must be {list(wanted)}, by output_dim, or whole numbers'
    _require(allowed, f'{function}, targets', targets, rule)


def _ndim(value: Any) -> int:
  """Returns the number of axes; -1 for what is no array."""
  return getattr(value, 'ndim', -1)


def _require(allowed: bool, function: str, value: Any, rule: str) -> None:
  """Raises UserError unless what a function returns is allowed."""
  if not allowed:
    shown = jax.tree.map(_show, value, is_leaf=lambda x: x is None)
    text = shown if isinstance(shown, str) else untrusted.shorten(shown)
    raise errors.UserError(f'{function} returns {text}; {rule}.')


def _show(leaf: Any) -> str:
  shape = getattr(leaf, 'shape', None)
  return repr(leaf) if shape is None else f'an array {list(shape)}'

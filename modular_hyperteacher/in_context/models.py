"""The two in-context learners: a transformer, and one with a bottleneck.

Source: Section 3 and Figure 1 of Kobayashi et al. (2024).

- `transformer` predicts directly. Its tokens are the examples (x_i, y_i) of the
  context, then the query (x, 0), where the prediction is read.
- `hypernetwork_transformer` infers a latent code first. Its tokens are the
  context, then a token of zeros, where the code is read. A linear hypernetwork
  mixes its modules by the code into a network that alone sees the query:

    y = gelu(x sum_m code_m Theta_m / sqrt(X)) a

Neither sees the query's target.
"""

from collections.abc import Callable, Iterable
import math
from typing import Any, NamedTuple, Protocol

import haiku as hk
import jax
import jax.numpy as jnp

from modular_hyperteacher.in_context import transformer
from modular_hyperteacher.models import base
from modular_hyperteacher.tasks import base as tasks

Params = Any
# Of what a code, or a hidden layer, mixes: variance 1 / (number of rows).
_MIXED = hk.initializers.VarianceScaling(
    1.0, 'fan_in', 'truncated_normal', fan_in_axes=[0]
)


class Prediction(NamedTuple):
  """What a model makes of one sequence with Q queries."""

  outputs: jax.Array  # [Q, Y]
  # Name -> features of the first query from which latents may be decoded.
  features: dict[str, jax.Array]


class Apply(Protocol):
  """Predicts the queries of one task, each in a sequence of its own."""

  def __call__(
      self,
      params: Params,
      key: jax.Array | None,
      support: tasks.Batch,
      inputs: jax.Array,
      is_training: bool,
      /,
  ) -> Prediction:
    """Returns the predictions.

    Args:
      params: of the model.
      key: for dropout; None if not training.
      support: the context, S examples.
      inputs: of the queries, [Q, X].
      is_training: turns dropout on; must be static.
    """
    ...


class Model(NamedTuple):
  """An in-context learner, as pure functions."""

  init: Callable[[jax.Array], Params]
  apply: Apply


def make_transformer(
    *,
    input_dim: int,
    output_dim: int,
    num_support: int,
    body: transformer.TransformerConfig,
) -> Model:
  """Returns the transformer.

  Args:
    input_dim: X.
    output_dim: Y.
    num_support: S.
    body: the blocks between embedding and readout.
  """

  def apply(
      support: tasks.Batch, inputs: jax.Array, is_training: bool
  ) -> Prediction:
    context = _context(support)
    queries = jnp.pad(inputs, ((0, 0), (0, output_dim)))
    shape = len(queries), *context.shape
    tokens = jnp.concatenate(
        [jnp.broadcast_to(context[None], shape), queries[:, None]], 1
    )
    run = transformer.Transformer(body, is_training, 'body')
    last, streams = run(tokens)
    outputs = transformer.linear(output_dim, 'readout')(last)
    return Prediction(outputs, _name(stream[0] for stream in streams))

  return _make(apply, input_dim, output_dim, num_support)


def make_hypernetwork_transformer(
    *,
    input_dim: int,
    output_dim: int,
    num_support: int,
    body: transformer.TransformerConfig,
    num_modules: int,
    task_hidden_dim: int,
) -> Model:
  """Returns the transformer with a bottleneck.

  Args:
    input_dim: X.
    output_dim: Y.
    num_support: S.
    body: the blocks that infer the code.
    num_modules: M-hat of the hypernetwork, the dimension of the code.
    task_hidden_dim: H, hidden units of the generated network.
  """
  base.check_positive(num_modules=num_modules, task_hidden_dim=task_hidden_dim)

  def apply(
      support: tasks.Batch, inputs: jax.Array, is_training: bool
  ) -> Prediction:
    tokens = jnp.pad(_context(support), ((0, 1), (0, 0)))
    run = transformer.Transformer(body, is_training, 'body')
    last, streams = run(tokens)
    code = transformer.linear(num_modules, 'code')(last)
    modules = hk.get_parameter(
        'modules', (num_modules, input_dim, task_hidden_dim), init=_MIXED
    )
    readout = hk.get_parameter(
        'readout', (task_hidden_dim, output_dim), init=_MIXED
    )
    outputs = run_task_network(code, modules, readout, inputs)
    return Prediction(outputs, _name(streams) | {'code': code})

  return _make(apply, input_dim, output_dim, num_support)


def run_task_network(
    code: jax.Array, modules: jax.Array, readout: jax.Array, inputs: jax.Array
) -> jax.Array:
  """Returns the outputs [Q, Y] of the network that a code generates.

  Args:
    code: [M-hat].
    modules: [M-hat, X, H].
    readout: [H, Y].
    inputs: [Q, X].
  """
  weights = jnp.tensordot(code, modules, 1) / math.sqrt(modules.shape[1])
  return jax.nn.gelu(inputs @ weights) @ readout


def _make(
    apply: Callable[[tasks.Batch, jax.Array, bool], Prediction],
    input_dim: int,
    output_dim: int,
    num_support: int,
) -> Model:
  transformed = hk.transform(apply)
  context = tasks.examples(
      jnp.zeros((num_support, input_dim)), jnp.zeros((num_support, output_dim))
  )
  return Model(
      init=lambda key: transformed.init(
          key, context, jnp.zeros((1, input_dim)), False
      ),
      apply=transformed.apply,
  )


def _context(support: tasks.Batch) -> jax.Array:
  """Returns the tokens of the context, [S, X + Y]."""
  return jnp.concatenate([tasks.dense(support.inputs), support.targets], -1)


def _name(streams: Iterable[jax.Array]) -> dict[str, jax.Array]:
  return {f'block_{i}': stream for i, stream in enumerate(streams)}

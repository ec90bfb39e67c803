"""The two in-context learners: a transformer, and one with a bottleneck.

Source: Section 3 and Figure 1 of Kobayashi et al. (2024).

- `transformer` predicts directly. Its tokens are the examples (x_i, y_i) of the
  context, then the query (x, 0), where the prediction is read.
- `hypernetwork_transformer` infers a latent code first. Its tokens are the
  context, then a token of zeros, where the code is read. A linear hypernetwork
  mixes its modules by the code into a network that alone sees the query:

    y = gelu(x sum_m code_m Theta_m / sqrt(X)) a

Where the task is a sequence already, as in sRAVEN, `transformer` reads its
tokens as they are, and predicts all queries from its last tokens. None sees a
query's target.
"""

from collections.abc import Callable, Iterable
import math
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp

from modular_hyperteacher.studies.in_context import transformer
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.untrusted import rules

Params = Any
# Weights that a code or a hidden layer mixes: variance 1 / (number of rows).
_MIXED = hk.initializers.VarianceScaling(
    1.0, 'fan_in', 'truncated_normal', fan_in_axes=[0]
)


class Prediction(NamedTuple):
  """What a model makes of one sequence with Q queries."""

  outputs: jax.Array  # [Q, Y]
  # Name -> features of the first query, or of the last one of a sequence, from
  # which latents may be decoded.
  features: dict[str, jax.Array]
  # At the token where the first query is read: scores of its attention to
  # itself, over the heads of each block, [blocks, A]; of all queries of a
  # sequence, [Q, blocks, A].
  codes: jax.Array


# (params, key, support, inputs, is_training) -> predictions of one task's
# queries, each in a sequence of its own. `key` is for dropout, None if not
# training. `support` is the context, S examples; `inputs` are the queries',
# [Q, X]. `is_training` turns dropout on and must be static.
Apply = Callable[
    [Params, jax.Array | None, tasks.Batch, jax.Array, bool], Prediction
]


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
  """Returns the transformer; `body` stands between embedding and readout."""

  def apply(
      support: tasks.Batch, inputs: jax.Array, is_training: bool
  ) -> Prediction:
    context = _context(support)
    queries = jnp.pad(inputs, ((0, 0), (0, output_dim)))
    contexts = jnp.broadcast_to(context[None], (len(queries), *context.shape))
    tokens = jnp.concatenate([contexts, queries[:, None]], 1)
    last = transformer.Transformer(body, is_training)(tokens)
    outputs = transformer.linear(output_dim, 'readout')(last.output[:, 0])
    features = _name(stream[0, 0] for stream in last.streams)
    codes = jnp.stack([code[0, 0] for code in last.codes])
    return Prediction(outputs, features, codes)

  return _make(apply, input_dim, output_dim, num_support)


def make_sequence_transformer(
    *,
    input_dim: int,
    output_dim: int,
    num_support: int,
    num_query: int,
    body: transformer.TransformerConfig,
) -> Model:
  """Returns the transformer for tasks that are sequences.

  S tokens are given; predictions are read at the Q tokens after them.
  """

  def apply(
      support: tasks.Batch, inputs: jax.Array, is_training: bool
  ) -> Prediction:
    tokens = jnp.concatenate([tasks.dense(support.inputs), inputs])
    read = transformer.Transformer(body, is_training)
    last = read(tokens, num_query)
    outputs = transformer.linear(output_dim, 'readout')(last.output)
    features = _name(stream[-1] for stream in last.streams)
    return Prediction(outputs, features, jnp.stack(last.codes, axis=1))

  return _make(apply, input_dim, output_dim, num_support, num_query)


@rules.enforce('model')
def make_hypernetwork_transformer(
    *,
    input_dim: int,
    output_dim: int,
    num_support: int,
    body: transformer.TransformerConfig,
    num_modules: rules.Count,
    task_num_hidden: rules.Layers,
    task_hidden_dim: rules.Count,
    task_bias: bool,
) -> Model:
  """Returns the transformer with a bottleneck.

  Its code, of dimension `num_modules`, generates hidden layers of width
  `task_hidden_dim`: as in the hyperteacher, all of `task_num_hidden` but the
  first, or the only one. With `task_bias`, it also generates their biases and
  those of outputs; the paper's teacher has none.
  """
  num_generated = max(task_num_hidden - 1, 1)

  def make_task_network() -> TaskNetwork:
    fan_in = input_dim if task_num_hidden == 1 else task_hidden_dim
    shapes: dict[str, tuple[int, ...]] = {
        'modules': (num_modules, num_generated, fan_in, task_hidden_dim),
        'readout': (task_hidden_dim, output_dim),
    }
    if task_num_hidden > 1:
      shapes['embedding'] = (input_dim, task_hidden_dim)
    if task_bias:
      shapes['biases'] = (num_modules, num_generated, task_hidden_dim)
      shapes['output_biases'] = (num_modules, output_dim)
    return TaskNetwork(**{
        name: hk.get_parameter(name, shape, init=_MIXED)
        for name, shape in shapes.items()
    })

  def apply(
      support: tasks.Batch, inputs: jax.Array, is_training: bool
  ) -> Prediction:
    tokens = jnp.pad(_context(support), ((0, 1), (0, 0)))
    last = transformer.Transformer(body, is_training)(tokens)
    code = transformer.linear(num_modules, 'code')(last.output[0])
    outputs = make_task_network().respond(code, inputs)
    features = _name(stream[0] for stream in last.streams) | {'code': code}
    return Prediction(
        outputs, features, jnp.stack([code[0] for code in last.codes])
    )

  return _make(apply, input_dim, output_dim, num_support)


class TaskNetwork(NamedTuple):
  """What the bottleneck's code generates a network from, and its fixed part."""

  modules: jax.Array  # [M-hat, generated layers, fan-in, H]
  readout: jax.Array  # [H, Y]
  embedding: jax.Array | None = None  # [X, H]
  biases: jax.Array | None = None  # [M-hat, generated layers, H]
  output_biases: jax.Array | None = None  # [M-hat, Y]

  def respond(self, code: jax.Array, inputs: jax.Array) -> jax.Array:
    """Returns outputs [Q, Y] at inputs [Q, X], given a code [M-hat]."""
    hidden = inputs
    if self.embedding is not None:
      hidden = jax.nn.gelu(hidden @ self.embedding)
    generated = jnp.tensordot(code, self.modules, 1)
    for layer, weights in enumerate(generated):
      hidden = hidden @ weights / math.sqrt(weights.shape[0])
      if self.biases is not None:
        hidden += (code @ self.biases[:, layer])[None]
      hidden = jax.nn.gelu(hidden)
    outputs = hidden @ self.readout
    if self.output_biases is not None:
      outputs += (code @ self.output_biases)[None]
    return outputs


def _make(
    apply: Callable[[tasks.Batch, jax.Array, bool], Prediction],
    input_dim: int,
    output_dim: int,
    num_support: int,
    num_query: int = 1,
) -> Model:
  # Every token can attend to every other.
  tasks.check_size('num_support', (num_support + num_query) ** 2)
  transformed = hk.transform(apply)

  def init(key: jax.Array) -> Params:
    context = tasks.examples(
        jnp.zeros((num_support, input_dim)),
        jnp.zeros((num_support, output_dim)),
    )
    queries = jnp.zeros((num_query, input_dim))
    return transformed.init(key, context, queries, False)

  return Model(init=init, apply=transformed.apply)


def _context(support: tasks.Batch) -> jax.Array:
  """Returns the tokens of the context, [S, X + Y]."""
  return jnp.concatenate([tasks.dense(support.inputs), support.targets], -1)


def _name(streams: Iterable[jax.Array]) -> dict[str, jax.Array]:
  return {f'block_{i}': stream for i, stream in enumerate(streams)}

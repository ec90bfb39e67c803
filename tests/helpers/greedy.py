"""Greedy decoding, by the network that training differentiates."""

import jax
from jax import lax
import jax.numpy as jnp

from modular_hyperteacher.studies.meta_seq2seq import model as models
from modular_hyperteacher.studies.meta_seq2seq import vocabulary


def decode(
    network: models.Model,
    params: models.Params,
    support: vocabulary.Pairs,
    query_inputs: vocabulary.Sequences,
    num_steps: int,
) -> jax.Array:
  """Returns the most likely symbols, each given those chosen before.

  Returns:
    [N, num_steps]; symbols after the first EOS are arbitrary.
  """
  num_rows = query_inputs.lengths.shape[0]
  lengths = jnp.full((num_rows,), num_steps, jnp.int32)

  def choose(step: jax.Array, tokens: jax.Array) -> jax.Array:
    outputs = vocabulary.Sequences(tokens, lengths)
    query = vocabulary.Pairs(query_inputs, outputs)
    decoded, _ = network.apply(params, None, support, query, False)
    chosen = jnp.argmax(decoded.logits[step], -1)
    return tokens.at[:, step].set(chosen.astype(jnp.int32))

  tokens = jnp.zeros((num_rows, num_steps), jnp.int32)
  return lax.fori_loop(0, num_steps, choose, tokens)

"""The fewest floating-point operations that a step of a sequence network needs.

Counted are the products of matrices on symbols that are no padding, as many as
an episode has on average; a forward pass makes one product per weight matrix,
training two more. Embeddings select rows, and attention multiplies what is as
long as a sequence.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from modular_hyperteacher.studies.meta_seq2seq import episodes
from modular_hyperteacher.studies.meta_seq2seq import vocabulary

_NUM_SAMPLED = 64


class Symbols(NamedTuple):
  """How many rows and symbols there are in an episode, on average."""

  rows: float
  inputs: float
  outputs: float


def outer_step(
    config: dict[str, Any],
    world: episodes.EpisodeDistribution,
    query: Symbols,
    support: Symbols,
) -> float:
  """Returns the least operations of one outer step of one seed.

  Args:
    config: a run's config.
    world: where its episodes come from.
    query: what `count_symbols` returned for it.
    support: the same.
  """
  model = config['model']
  hidden_dim, num_layers = model['hidden_dim'], model['num_layers']
  asked = query
  if model['outer']['support_loss']:
    asked = Symbols(*map(sum, zip(query, support)))
  read = _encoder(hidden_dim, num_layers)
  square = 2 * hidden_dim**2
  per_row = asked.inputs / asked.rows
  total = asked.inputs * read
  if world.has_support:
    total += (support.inputs + support.outputs) * read
    looked_up = 2 * 2 * support.rows * hidden_dim
    total += asked.inputs * (2 * square + looked_up)
  decoded = num_layers * 8 * square + 2 * hidden_dim * world.output_vocab.size
  if model.get('use_decoder_attention', True):
    decoded += 2 * square + 2 * 2 * per_row * hidden_dim
  total += asked.outputs * decoded
  return 3 * total * config['training']['meta_batch_size']


def _encoder(hidden_dim: int, num_layers: int) -> int:
  """Operations per symbol of LSTMs in both directions."""
  # From the embedding, or both directions below; and from the state before.
  widths = [hidden_dim] + [2 * hidden_dim] * (num_layers - 1)
  return sum(2 * 2 * (w + hidden_dim) * 4 * hidden_dim for w in widths)


def count_symbols(
    world: episodes.EpisodeDistribution,
) -> tuple[Symbols, Symbols]:
  """Returns the symbols of queries and of support sets, EOS included."""
  params = world.init(jax.random.key(0))
  keys = jax.random.split(jax.random.key(1), _NUM_SAMPLED)
  drawn = jax.jit(jax.vmap(world.sample, (None, 0)))(params, keys)

  def count(pairs: vocabulary.Pairs) -> Symbols:
    return Symbols(
        pairs.inputs.lengths.shape[1],
        float(np.sum(pairs.inputs.lengths)) / _NUM_SAMPLED,
        float(np.sum(pairs.outputs.lengths)) / _NUM_SAMPLED,
    )

  return count(drawn.query), count(drawn.support)

"""Mutual exclusivity: inferring the meaning of a word not in the support set.

Source: Section 4.2 of Lake (2019). Every episode maps four pseudowords to four
colours, one to one. The support set shows the meaning of three of them; queries
are sequences of all four:

  support: dax -> RED, lug -> BLUE, zup -> GREEN
  query:   wif dax wif -> YELLOW RED YELLOW

Five of the 24 bijections are held out for testing.
"""

import itertools
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.studies.meta_seq2seq import episodes
from modular_hyperteacher.studies.meta_seq2seq import vocabulary
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.untrusted import rules

WORDS = vocabulary.Vocabulary(('dax', 'lug', 'wif', 'zup'))
COLOURS = vocabulary.Vocabulary(('RED', 'YELLOW', 'GREEN', 'BLUE'))
NUM_WORDS = 4
NUM_HELD_OUT = 5
LENGTHS = (2, 6)  # Fewest and most words of a query.
_BIJECTIONS = np.array(list(itertools.permutations(range(4))), np.int32)
# Random queries to select distinct ones from. Practically always, at least 20
# of them are distinct.
_NUM_CANDIDATES = 64


class MutualExclusivity(episodes.EpisodeDistribution):
  """Episodes with three words in the support set, and queries of all four."""

  input_vocab = WORDS
  output_vocab = COLOURS
  has_support = True

  @rules.enforce('task')
  def __init__(
      self, *, num_query: Annotated[int, rules.between(1, 20)]
  ) -> None:
    """Sets the number of different queries per episode.

    Raises:
      UserError: if it is out of range.
    """
    self._num_query = num_query
    num_training = len(_BIJECTIONS) - NUM_HELD_OUT
    self.num_rows = dict.fromkeys(('train', 'valid', 'test'), num_training)
    self.num_rows['ood'] = NUM_HELD_OUT

  def init(self, key: episodes.Key) -> dict[str, jax.Array]:
    """Returns mappings word -> colour, [..., 4], for training and testing."""
    shuffled = jax.random.permutation(key, _BIJECTIONS)
    return {
        'training': shuffled[NUM_HELD_OUT:],
        'held_out': shuffled[:NUM_HELD_OUT],
    }

  def sample(self, params: Any, key: episodes.Key) -> episodes.Episode:
    """Returns an episode of a training mapping, with one word withheld."""
    mapping_key, withheld_key, query_key = jax.random.split(key, 3)
    mapping = jax.random.choice(mapping_key, params['training'])
    withheld = jax.random.randint(withheld_key, (), 0, NUM_WORDS)
    return self._make_episode(mapping, withheld, query_key)

  def _make_episode(
      self, mapping: jax.Array, withheld: jax.Array, key: episodes.Key
  ) -> episodes.Episode:
    shown = jnp.arange(NUM_WORDS - 1)
    shown += shown >= withheld
    return episodes.Episode(
        _translate(_finish(shown[:, None], jnp.ones_like(shown)), mapping),
        _translate(self._draw_queries(key), mapping),
    )

  def _draw_queries(self, key: episodes.Key) -> vocabulary.Sequences:
    """Returns the first N distinct ones of the random candidates."""
    length_key, word_key = jax.random.split(key)
    shape = _NUM_CANDIDATES, LENGTHS[1]
    lengths = jax.random.randint(
        length_key, shape[:1], LENGTHS[0], LENGTHS[1] + 1
    )
    symbols = jax.random.randint(word_key, shape, 0, NUM_WORDS)
    drawn = _finish(symbols, lengths)
    is_equal = (drawn.tokens[:, None] == drawn.tokens[None]).all(-1)
    is_repeated = jnp.tril(is_equal, -1).any(1)
    return tasks.take(drawn, jnp.argsort(is_repeated)[: self._num_query])

  def make_test_set(
      self, params: Any, key: episodes.Key, num_devices: int
  ) -> episodes.TestSet:
    """Returns an episode for every held-out mapping and withheld word."""
    cases = list(itertools.product(range(NUM_HELD_OUT), range(NUM_WORDS)))
    weights = np.ones(len(cases), np.float32)
    missing = -len(cases) % num_devices
    cases = np.array(cases + cases[:1] * missing)
    drawn = jax.jit(jax.vmap(self._make_episode))(
        params['held_out'][cases[:, 0]],
        cases[:, 1],
        jax.random.split(key, len(cases)),
    )
    weights = np.pad(weights, (0, missing))
    weights = jnp.tile(weights[:, None], (1, self._num_query))
    return episodes.TestSet(drawn, weights, weights > 0)

  def measure(
      self, test_set: episodes.TestSet, correct: np.ndarray
  ) -> dict[str, float]:
    """Returns the accuracies on queries with and without the withheld word.

    `accuracy_one_withheld` covers what the paper tested: each mapping once,
    with one word withheld.
    """
    query = jax.tree.map(np.asarray, test_set.episodes.query.inputs)
    shown = np.asarray(test_set.episodes.support.inputs.tokens)[:, :, 0]
    is_word = query.tokens < NUM_WORDS
    is_shown = (query.tokens[..., None] == shown[:, None, None]).any(-1)
    asks_withheld = (is_word & ~is_shown).any(-1)
    counted = np.asarray(test_set.weights) > 0
    cases = np.arange(NUM_HELD_OUT)
    once = correct[NUM_WORDS * cases + cases % NUM_WORDS]
    return {
        'accuracy_withheld': float(correct[counted & asks_withheld].mean()),
        'accuracy_shown': float(correct[counted & ~asks_withheld].mean()),
        'accuracy_one_withheld': float(once.mean()),
    }

  def example(self) -> episodes.Episode:
    """Returns 'zup dax wif lug zup' with 'zup' withheld, identity mapping."""
    rows = WORDS.encode([('zup', 'dax', 'wif', 'lug', 'zup')], LENGTHS[1] + 1)
    shown = jnp.arange(NUM_WORDS - 1)
    mapping = jnp.arange(NUM_WORDS)
    return episodes.Episode(
        _translate(_finish(shown[:, None], jnp.ones_like(shown)), mapping),
        _translate(jax.tree.map(jnp.asarray, rows), mapping),
    )


def _translate(
    inputs: vocabulary.Sequences, mapping: jax.Array
) -> vocabulary.Pairs:
  """Returns inputs paired with their meanings."""
  table = jnp.concatenate([mapping, jnp.array([COLOURS.sos, COLOURS.eos])])
  return vocabulary.Pairs(inputs, vocabulary.relabel(inputs, table))


def _finish(symbols: jax.Array, lengths: jax.Array) -> vocabulary.Sequences:
  """Cuts symbols [N, up to 6] to these lengths, and appends EOS."""
  missing = LENGTHS[1] + 1 - symbols.shape[1]
  symbols = jnp.pad(symbols, ((0, 0), (0, missing)))
  positions, ends = jnp.arange(LENGTHS[1] + 1)[None], lengths[:, None]
  tokens = jnp.where(positions < ends, symbols, WORDS.sos)
  tokens = jnp.where(positions == ends, WORDS.eos, tokens)
  return vocabulary.Sequences(tokens.astype(jnp.int32), lengths + 1)

"""Episodes of SCAN: commands in which some words have new meanings.

Source: Sections 4.3 to 4.6 of Lake (2019), and the released code. The commands
of an episode and the meanings of words are drawn independently. If jump means
I_WALK and walk means I_JUMP, and the other words keep their meanings,

  jump twice and walk left -> I_WALK I_WALK I_TURN_LEFT I_JUMP

In the test, the support set shows SCAN's own meanings, and the queries are a
split's test rows. A standard network has no support set and trains on a split's
training rows instead.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher.studies.meta_seq2seq import episodes
from modular_hyperteacher.studies.meta_seq2seq import meanings as meanings_lib
from modular_hyperteacher.studies.meta_seq2seq import scan
from modular_hyperteacher.studies.meta_seq2seq import vocabulary
from modular_hyperteacher.untrusted import rules

# Support set of the test; that of 'length' is drawn from its training rows.
_SUPPORTS = {
    'add_jump': tuple((word,) for word in scan.PRIMITIVES),
    'around_right': (('turn', 'left'), ('turn', 'right')),
    'length': (),
}
_EXAMPLES = {  # Queries for figures of attention.
    'add_jump': 'jump twice after run left',
    'around_right': 'run around right',
    'length': 'jump thrice and walk thrice',
}
# Meanings -> a function that makes `draw_tables`; 'fixed' needs none.
MEANINGS = {
    'permuted': meanings_lib.make_permuted,
    'extended': meanings_lib.make_extended,
    'fixed': lambda split, num_extra: None,
    'aligned': meanings_lib.make_aligned,
}
_NUM_SUPPORTS = 5  # Support sets to average over, in 'length'.
_MAX_WORDS = 9
_CHUNK_SIZE = 128  # Test rows evaluated together.


class ScanEpisodes(episodes.EpisodeDistribution):
  """Episodes that differ in what words mean, or batches without support set."""

  @rules.enforce('task')
  def __init__(
      self,
      *,
      split: Annotated[str, rules.one_of(_SUPPORTS)],
      meanings: Annotated[str, rules.one_of(MEANINGS)],
      num_support: int,
      num_query: Annotated[int, rules.at_least(1)],
      num_extra: int,
      max_actions: Annotated[int, rules.between(4, scan.MAX_ACTIONS)],
      max_query_actions: int,
      max_support_actions: int,
  ) -> None:
    """Selects the commands that episodes are made of.

    Args:
      split: the test set, 'add_jump', 'around_right' or 'length'.
      meanings: 'permuted' or 'extended', see `meanings.py`; 'fixed', SCAN's
        own; or 'aligned', where each row replaces words together with their
        actions, and every batch has one isolated "jump".
      num_support: I, per episode; 0 for 'fixed' and 'aligned'.
      num_query: N.
      num_extra: words added to SCAN's, and as many actions; 0 for 'permuted'
        and 'fixed'.
      max_actions: the most actions of any command; fewer than SCAN's 48 make a
        smaller dataset.
      max_query_actions: the most actions of training queries; 'length' tests
        longer ones. At least `max_actions` in other splits.
      max_support_actions: the most actions of the support set in training;
        training queries of 'length' are longer. At least `max_actions` in other
        splits.

    Raises:
      UserError: if a value is invalid, or if values contradict each other.
    """
    self._split = split
    self._meanings = meanings
    self._num_support = num_support
    self._num_query = num_query
    self._max_actions = max_actions
    self._limits = max_support_actions, max_query_actions
    self._check(num_extra)
    # No command is longer.
    self._limits = tuple(min(limit, max_actions) for limit in self._limits)
    self.input_vocab, self.output_vocab = meanings_lib.vocabularies(
        split, num_extra
    )
    self._draw_tables = MEANINGS[meanings](split, num_extra)
    self._pairs = [p for p in scan.all_pairs() if len(p.actions) <= max_actions]
    if split == 'length':
      sides = scan.split_by_length(self._pairs, max_query_actions)
    else:
      sides = scan.split(split, self._pairs)
    self._training, self._tested = sides
    errors.require(
        self._tested,
        'task.max_actions',
        max_actions,
        f"it leaves no command for the test of task.split '{split}'",
    )
    # Not in the released test file: evaluated, but not part of the split's
    # accuracy.
    self._uncounted = [
        pair
        for pair in self._pairs
        if split == 'around_right'
        and scan.contains(pair.command, 'turn around right')
    ]
    self._pools = self._make_pools()
    number = len(set(self._pools['query'].tolist()))
    self.num_rows = dict.fromkeys(('train', 'valid', 'test'), number)
    self.num_rows['ood'] = len(self._tested)

  def _check(self, num_extra: int) -> None:
    """Raises if fields are invalid or contradict each other."""
    given = f"with task.meanings '{self._meanings}' it must be"
    errors.require(
        self._meanings != 'aligned' or self._split == 'add_jump',
        'task.split',
        f"'{self._split}'",
        f"{given} 'add_jump'",
    )
    for field, value, is_used in (
        ('num_extra', num_extra, self._meanings in ('extended', 'aligned')),
        ('num_support', self._num_support, self.has_support),
    ):
      allowed = value > 0 if is_used else value == 0
      rule = f'{given} {"positive" if is_used else 0}'
      errors.require(allowed, f'task.{field}', value, rule)
    low, high = self._limits
    if self._split == 'length':
      fits, wanted = 0 < low < high < self._max_actions, 'in this order below'
    else:
      fits, wanted = min(low, high) >= self._max_actions, 'at least'
    if not fits:
      raise errors.UserError(
          f'task.max_support_actions is {low} and task.max_query_actions'
          f" {high}; with task.split '{self._split}' they must be {wanted}"
          f' task.max_actions, {self._max_actions}.'
      )

  @property
  def has_support(self) -> bool:
    """Whether episodes are drawn, rather than batches."""
    return self._meanings in ('permuted', 'extended')

  def _make_pools(self) -> dict[str, np.ndarray]:
    """Returns the indices of the commands that each part is drawn from."""
    index_of = {pair: i for i, pair in enumerate(self._pairs)}
    sizes = np.array([len(pair.actions) for pair in self._pairs])
    support, query = (np.flatnonzero(sizes <= limit) for limit in self._limits)
    if self._meanings == 'fixed':
      query = np.array([index_of[pair] for pair in self._training])
    elif self._split == 'length':
      query = np.setdiff1d(query, support)
      episodes.check_distinct('task.num_query', self._num_query, len(query))
    if self.has_support:
      field, number = 'task.num_support', self._num_support
      if self._split != 'length':
        field, number = f'{field} + num_query', number + self._num_query
      episodes.check_distinct(field, number, len(support))
    return {'support': support, 'query': query}

  def init(self, key: episodes.Key) -> dict[str, Any]:
    """Returns all commands as tokens, and the pools; independent of the key."""
    del key
    pairs = self.encode(self._pairs, self._max_actions)
    return jax.tree.map(jnp.asarray, {'pairs': pairs, **self._pools})

  def encode(
      self, pairs: Sequence[scan.Pair], max_actions: int
  ) -> vocabulary.Pairs:
    """Returns pairs as NumPy arrays, padded to this many actions and EOS."""
    return vocabulary.Pairs(
        self.input_vocab.encode([p.command for p in pairs], _MAX_WORDS + 1),
        self.output_vocab.encode([p.actions for p in pairs], max_actions + 1),
    )

  def sample(self, params: Any, key: episodes.Key) -> episodes.Episode:
    """Returns a training episode, or a batch without support set."""
    row_key, other_key, table_key = jax.random.split(key, 3)
    draw_tables = self._draw_tables
    if draw_tables is None or not self.has_support:
      return self._sample_batch(params, row_key, table_key)
    num_support, num_query = self._num_support, self._num_query
    if self._split == 'length':
      support = self._draw_rows(params['support'], row_key, num_support)
      query = self._draw_rows(params['query'], other_key, num_query)
    else:
      rows = self._draw_rows(params['query'], row_key, num_support + num_query)
      support, query = rows[:num_support], rows[num_support:]
    tables = draw_tables(table_key)
    return episodes.Episode(*(
        meanings_lib.replace(self._take(params, rows, limit), tables)
        for rows, limit in zip((support, query), self._limits)
    ))

  def _draw_rows(
      self, pool: jax.Array, key: episodes.Key, number: int
  ) -> jax.Array:
    return pool[episodes.draw_distinct(key, number, len(pool))]

  def _sample_batch(
      self, params: Any, row_key: episodes.Key, table_key: episodes.Key
  ) -> episodes.Episode:
    rows = jax.random.choice(row_key, params['query'], (self._num_query,))
    batch = self._take(params, rows, self._limits[1])
    if self._draw_tables is not None:  # 'aligned'
      keys = jax.random.split(table_key, self._num_query)
      batch = jax.vmap(meanings_lib.replace)(
          batch, jax.vmap(self._draw_tables)(keys)
      )
      isolated = self.encode([_pair(('jump',))], self._limits[1])
      batch = jax.tree.map(
          lambda x, y: x.at[0].set(jnp.asarray(y)[0]), batch, isolated
      )
    return episodes.Episode(_no_rows(batch), batch)

  def _take(
      self, params: Any, rows: jax.Array, max_actions: int
  ) -> vocabulary.Pairs:
    """Returns commands by their indices, with outputs cut to `max_actions`."""
    pairs = jax.tree.map(lambda x: x[rows], params['pairs'])
    tokens = pairs.outputs.tokens[:, : max_actions + 1]
    return pairs._replace(outputs=pairs.outputs._replace(tokens=tokens))

  def make_test_set(
      self, params: Any, key: episodes.Key, num_devices: int
  ) -> episodes.TestSet:
    """Returns the split's test rows, paired with its support sets.

    Commands with "turn around right" have weight 0 in 'around_right'.
    """
    del params
    queries = self.encode(self._tested + self._uncounted, self._max_actions)
    weights = np.repeat([1, 0], [len(self._tested), len(self._uncounted)])
    supports = self._supports(queries, jax.random.split(key, _NUM_SUPPORTS))
    return episodes.chunk(queries, supports, _CHUNK_SIZE, num_devices, weights)

  def _supports(
      self, queries: vocabulary.Pairs, keys: Sequence[episodes.Key] | jax.Array
  ) -> list[vocabulary.Pairs]:
    """Returns the support sets of the test; in 'length' one per key."""
    if not self.has_support:
      return [_no_rows(queries)]
    if self._split != 'length':
      pairs = [_pair(command) for command in _SUPPORTS[self._split]]
      return [self.encode(pairs, max(len(pair.actions) for pair in pairs))]
    orders = [jax.random.permutation(key, len(self._training)) for key in keys]
    return [
        self.encode(
            [self._training[i] for i in np.asarray(rows[: self._num_support])],
            self._limits[1],
        )
        for rows in orders
    ]

  def measure(
      self, test_set: episodes.TestSet, correct: np.ndarray
  ) -> dict[str, float]:
    """Returns the accuracy on every output length that occurs.

    In 'around_right' also `accuracy_all_uses`: on the test rows and those with
    "turn around right", which the paper's text includes.
    """
    sizes = np.asarray(test_set.episodes.query.outputs.lengths) - 1
    counted = np.asarray(test_set.weights) > 0
    metrics = {
        f'accuracy_length_{size}': float(
            correct[counted & (sizes == size)].mean()
        )
        for size in np.unique(sizes[counted])
    }
    if self._uncounted:
      is_row = np.asarray(test_set.is_row)
      metrics['accuracy_all_uses'] = float(correct[is_row].mean())
    return metrics

  def example(self) -> episodes.Episode:
    """Returns one command, and a support set of the split."""
    pair = _pair(tuple(_EXAMPLES[self._split].split()))
    query = self.encode([pair], max(len(pair.actions), self._max_actions))
    (support,) = self._supports(query, [jax.random.key(0)])
    return jax.tree.map(jnp.asarray, episodes.Episode(support, query))


def _pair(command: scan.Words) -> scan.Pair:
  return scan.Pair(command, scan.interpret(command))


def _no_rows(pairs: vocabulary.Pairs) -> vocabulary.Pairs:
  return jax.tree.map(lambda x: x[:0], pairs)

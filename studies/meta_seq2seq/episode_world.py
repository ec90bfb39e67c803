"""Worlds of an `EpisodeDistribution`: SCAN and mutual exclusivity."""

from collections.abc import Mapping
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.studies.meta_seq2seq import episodes
from modular_hyperteacher.studies.meta_seq2seq import system
from modular_hyperteacher.untrusted import npz
from modular_hyperteacher.worlds import world as worlds

_FIXED = 'ood'  # A test set, rather than a distribution.


@dataclasses.dataclass(frozen=True, eq=False)
class EpisodeWorld(worlds.World):
  """A world of sequences; predictions are tokens, scored per row.

  Query rows that belong to no split or are padding have mask False.
  """

  distribution: episodes.EpisodeDistribution = dataclasses.field(repr=False)

  @property
  def splits(self) -> tuple[str, ...]:
    """'train', and the splits that evaluation reports."""
    return ('train', *system.SPLITS)

  @property
  def description(self) -> dict[str, Any]:
    """The symbols of input and output tokens, in the order of the tokens."""
    return {
        f'{side}_symbols': (*vocabulary.symbols, 'SOS', 'EOS')
        for side, vocabulary in (
            ('input', self.distribution.input_vocab),
            ('output', self.distribution.output_vocab),
        )
    }

  def _count(self, split: str) -> int:
    return self.distribution.num_rows[split]

  @property
  def fixed_sizes(self) -> Mapping[str, int]:
    """The number of episodes of the test set."""
    return {_FIXED: len(self._test_set.query_mask)}

  def shapes(
      self, split: str, num_tasks: int | None = None, seed: int = 0
  ) -> worlds.Tasks:
    """Returns the shapes and dtypes of what `sample` returns, or raises."""
    if split != _FIXED:
      return super().shapes(split, num_tasks, seed)
    self._num_tasks(split, num_tasks, seed)
    return self._test_set

  def _draw(self, key: jax.Array, split: str, num_tasks: int) -> worlds.Tasks:
    if split == _FIXED:
      return self._draw_test_set(key)
    return self._draw_compiled(self.params, key, num_tasks)

  def _draw_test_set(self, key: jax.Array) -> worlds.Tasks:
    drawn = self.distribution.make_test_set(self.params, key, num_devices=1)
    return _arrays(drawn.episodes, drawn.weights > 0)

  @functools.cached_property
  def _test_set(self) -> worlds.Tasks:
    """The test set of seed 0; other seeds have the same shapes."""
    return worlds.on_cpu(self._draw_test_set)(self._key(_FIXED, 0))

  @functools.cached_property
  def _draw_compiled(self) -> Any:
    def draw(params: Any, key: jax.Array, num_tasks: int) -> worlds.Tasks:
      keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(num_tasks))
      drawn = jax.vmap(self.distribution.sample, (None, 0))(params, keys)
      return _arrays(drawn)

    return jax.jit(draw, static_argnums=2)

  def prediction(self, tasks: Any) -> npz.Expected:
    """Returns [B, Q, T] tokens."""
    return npz.Expected(tasks.query_targets.shape, 'iu')

  def _measure(
      self, predictions: np.ndarray, tasks: worlds.Tasks
  ) -> dict[str, float]:
    padding = tasks.query_targets == self.distribution.output_vocab.sos
    right = (predictions == tasks.query_targets) | padding
    return {'accuracy': float(right.all(-1)[tasks.query_mask].mean())}


def _arrays(
    drawn: episodes.Episode, is_counted: jax.Array | None = None
) -> worlds.Tasks:
  """Returns the arrays of episodes [B, ...]; is_counted: [B, Q] bool."""
  support, query = drawn
  if is_counted is None:
    is_counted = jnp.ones(query.outputs.lengths.shape, bool)
  return worlds.Tasks._make((
      support.inputs.tokens,
      support.outputs.tokens,
      jnp.ones(support.outputs.lengths.shape, bool),
      query.inputs.tokens,
      query.outputs.tokens,
      is_counted,
      jnp.zeros((len(is_counted), 0, 0)),
  ))

"""The recurrence of an LSTM, and its derivative."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from modular_hyperteacher.studies.meta_seq2seq import lstm
from tests.helpers import slow
from tests.helpers import trees


def _plain_scan(
    projected: Any, weights: Any, masks: Any, starts: Any
) -> tuple[jax.Array, ...]:
  """The same by reverse-mode differentiation of a scan of single steps."""

  def run(
      xs: jax.Array, w: jax.Array, mask: jax.Array, start: Any
  ) -> jax.Array:
    def step(state: Any, inputs: Any) -> Any:
      x, m = inputs
      i, f, o, g = jnp.split(x + state.h @ w, 4, axis=1)
      c = jax.nn.sigmoid(f) * state.c + jax.nn.sigmoid(i) * jnp.tanh(g)
      state = lstm.State(jax.nn.sigmoid(o) * jnp.tanh(c), c)
      state = jax.tree.map(lambda a: jnp.where(m[:, None], a, 0.0), state)
      return state, state.h

    return jax.lax.scan(step, start, (xs, mask))[1]

  return tuple(map(run, projected, weights, masks, starts))


def _recurrence(seed: int) -> tuple[Any, ...]:
  """Returns arguments of two LSTMs, of which the last step is skipped."""
  keys = iter(jax.random.split(jax.random.key(seed), 8))
  lengths = jnp.array([[2, 4, 1]])
  mask = jnp.arange(5)[:, None] < lengths
  draw = lambda *shape: jax.random.normal(next(keys), shape)
  return (
      (draw(5, 3, 16), draw(5, 3, 16)),
      (draw(4, 16), draw(4, 16)),
      (mask, mask[::-1]),
      (lstm.State(draw(3, 4), draw(3, 4)), lstm.State(draw(3, 4), draw(3, 4))),
  )


@pytest.mark.parametrize(
    'num_seeds, backend',
    slow.mark([(1, 'cpu'), (2, 'cpu'), (1, 'gpu')], [(2, 'cpu')]),
)
def test_the_derivative_is_that_of_a_plain_scan(
    num_seeds: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
  # Accelerators run the steps that a CPU skips.
  monkeypatch.setattr(lstm.jax, 'default_backend', lambda: backend)
  drawn = [_recurrence(seed) for seed in range(num_seeds)]
  stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *drawn)

  def gradient(scan: Callable[..., Any]) -> Any:
    def loss(projected: Any, weights: Any, starts: Any, masks: Any) -> Any:
      found = scan(projected, weights, masks, starts)
      return sum((jnp.sin(3 * h) * (i + 1)).sum() for i, h in enumerate(found))

    grads = jax.vmap(jax.value_and_grad(loss, argnums=(0, 1, 2)))
    projected, weights, masks, starts = stacked
    return jax.jit(grads)(projected, weights, starts, masks)

  trees.assert_close(gradient(lstm.scan), gradient(_plain_scan), atol=1e-4)

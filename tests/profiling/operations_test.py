"""The operations counted in a program are those that a profile shows."""

import pathlib

import jax
from jax import lax
import jax.numpy as jnp
import pytest

from modular_hyperteacher.profiling import operations

_CONTROL = ('while', 'call', 'cond')


def _program(inner: int, outer: int) -> jax.stages.Compiled:
  """Loops in a loop: products, elementwise operations and branches."""

  def body(x: jax.Array, _: None) -> tuple[jax.Array, None]:
    # The longer branch is taken, whichever comes first.
    taken = jnp.isfinite(x[0, 0])
    x = lax.cond(taken, lambda x: jnp.sin(x @ x) @ x, lambda x: x, x)
    x = lax.cond(~taken, lambda x: x, lambda x: jnp.sin(x @ x), x)
    y, _ = lax.scan(lambda x, _: (jnp.sin(x @ x), None), x, length=inner)
    return x + y.sum(0)[None], None

  @jax.jit
  def run(x: jax.Array) -> jax.Array:
    return lax.scan(body, jnp.cos(x), length=outer)[0].T @ x

  return run.lower(jnp.ones((40, 40))).compile()


@pytest.mark.parametrize('inner, outer', [(1, 1), (7, 3), (20, 5)])
def test_as_many_as_the_profiler_sees(
    inner: int, outer: int, tmp_path: pathlib.Path
) -> None:
  program = _program(inner, outer)
  inputs = jax.block_until_ready(jnp.ones((40, 40)))
  with jax.profiler.trace(str(tmp_path)):
    jax.block_until_ready(program(inputs))
  (path,) = tmp_path.glob('plugins/profile/*/*.xplane.pb')
  profile = jax.profiler.ProfileData.from_file(str(path))
  seen = [
      dict(event.stats)['hlo_op']
      for plane in profile.planes
      for line in plane.lines
      for event in line.events
      if 'hlo_op' in dict(event.stats)
  ]
  started = [name for name in seen if not name.startswith(_CONTROL)]
  assert operations.count(program) == len(started), sorted(set(seen))


def test_a_loop_of_unknown_length_counts_once() -> None:
  @jax.jit
  def run(x: jax.Array, length: int) -> jax.Array:
    return lax.fori_loop(0, length, lambda _, x: jnp.sin(x @ x), x)

  number = operations.count(run.lower(jnp.ones((40, 40)), 3).compile())
  assert number is not None and 2 <= number < 10

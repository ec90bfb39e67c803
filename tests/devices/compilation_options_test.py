"""JAX, of whatever version, takes the options for fast compilation."""

import jax
import jax.numpy as jnp

from modular_hyperteacher.devices import compilation_options
from tests.helpers import commands


def test_jax_takes_the_options() -> None:
  double = jax.jit(lambda x: 2 * x).lower(jnp.ones(3))
  compiled = double.compile(compilation_options.QUICK)
  assert compiled(jnp.ones(3)).tolist() == [2, 2, 2]


def test_jax_takes_the_flags() -> None:
  code = 'import jax; print(jax.numpy.ones(1)[0])'
  run = commands.python('-c', code, XLA_FLAGS=compilation_options.as_flags())
  assert (run.stdout, run.returncode) == ('1.0\n', 0), run.stderr

"""JAX, of whatever version, takes the options for fast compilation."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp

from modular_hyperteacher.devices import compilation_options


def test_jax_takes_the_options() -> None:
  double = jax.jit(lambda x: 2 * x).lower(jnp.ones(3))
  compiled = double.compile(compilation_options.QUICK)
  assert compiled(jnp.ones(3)).tolist() == [2, 2, 2]


def test_jax_takes_the_flags() -> None:
  command = [sys.executable, '-c', 'import jax; print(jax.numpy.ones(1)[0])']
  env = os.environ | {'XLA_FLAGS': compilation_options.as_flags()}
  run = subprocess.run(command, env=env, capture_output=True, text=True)
  assert (run.stdout, run.returncode) == ('1.0\n', 0), run.stderr

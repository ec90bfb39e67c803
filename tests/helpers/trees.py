"""Trees of arrays in tests."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def assert_close(
    actual: Any, expected: Any, rtol: float = 1e-7, atol: float = 0.0
) -> None:
  """Checks leaf by leaf; the trees must have the same structure."""
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=atol),
      actual,
      expected,
  )


def double(tree: Any) -> Any:
  """Returns the tree with its 32-bit floats in 64 bits."""
  return jax.tree.map(
      lambda x: x.astype(jnp.float64) if x.dtype == jnp.float32 else x, tree
  )

"""Precision of matrix products, on devices that offer several.

A GPU or a TPU can round the factors of a float32 product to fewer bits. This is
several times faster, changes results, and is JAX's default there. Here products
are computed in float32 unless `training.matmul_precision` asks for less. A CPU
always computes in float32.
"""

from collections.abc import Callable
import functools
from typing import Any

import jax

from modular_hyperteacher.devices import jax_settings

FLOAT32 = 'float32'
# JAX's names. On a TPU they mean six, three and one pass of bfloat16. On a GPU
# the last two both mean TF32.
LEVELS = (FLOAT32, 'tensorfloat32', 'bfloat16')


def at(level: str, function: Callable[..., Any]) -> Callable[..., Any]:
  """Returns the function, traced or run at one of `LEVELS`.

  Derivatives of the function use the same level. Other settings of JAX are
  fixed, too.
  """

  @functools.wraps(function)
  def call(*args: Any, **kwargs: Any) -> Any:
    # Set inside the call: the setting is per thread, and several threads
    # compile.
    with jax_settings.fixed(), jax.default_matmul_precision(level):
      return function(*args, **kwargs)

  return call

"""How exactly matrix products are computed, where a device has the choice.

A GPU or a TPU can round the factors of a float32 product to fewer bits. That is
several times as fast, changes results, and is what JAX does there if nothing is
said. Here products are exact to float32, unless `training.matmul_precision`
asks for less. A CPU computes in float32 whatever it says.
"""

import functools
from typing import Any, Callable

import jax

FLOAT32 = 'float32'
# JAX's names. On a TPU six, three passes or one of bfloat16; on a GPU the last
# two are both TF32.
LEVELS = (FLOAT32, 'tensorfloat32', 'bfloat16')


def at(level: str, function: Callable[..., Any]) -> Callable[..., Any]:
  """Returns a function that is traced, or run, with products of a level.

  Which a transformation carries over to the products of a derivative.

  Args:
    level: one of `LEVELS`.
    function: any; what it returns is not looked into.
  """

  @functools.wraps(function)
  def call(*args, **kwargs):
    # Inside of the call, as the setting is a thread's own, and programs are
    # compiled by several.
    with jax.default_matmul_precision(level):
      return function(*args, **kwargs)

  return call

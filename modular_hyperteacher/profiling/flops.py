"""Counts the floating-point operations of an outer step in its program.

Only matrix products, convolutions and factorisations count, with two operations
per multiply-add; everything else is of lower order. The body of a loop counts
once per iteration, unlike in XLA's cost analysis, which counts it once.
"""

from collections.abc import Callable, Iterator, Mapping
import functools
import json
import math
from typing import Any

import jax
from jax.extend import core

from modular_hyperteacher.experiments import build
from modular_hyperteacher.learning import outer_loop

# Operations per matrix [N, N], or per right-hand side [N] for a solve.
_FACTORISATIONS: Mapping[str, Callable[[int], float]] = {
    'cholesky': lambda n: n**3 / 3,
    'lu': lambda n: 2 * n**3 / 3,
    'triangular_solve': lambda n: n**2,
}
# Primitives whose computation the program does not show.
_OPAQUE = (
    'custom_call',
    'ffi_call',
    'io_callback',
    'pallas_call',
    'pure_callback',
)


class UnknownError(ValueError):
  """The program's operations cannot be counted."""


def outer_step(config: Mapping[str, Any]) -> float | None:
  """Returns the operations of an outer step of one seed on one device.

  None if a loop's length depends on data, or if there is a custom kernel.
  """
  # Runs that differ only in fields that do not affect it share a count.
  fixed = {'seeds': [0], 'num_outer_steps': 1, 'num_evaluation_tasks': 1}
  program = {**config, 'training': {**config['training'], **fixed}}
  return _outer_step(json.dumps(program, sort_keys=True))


def count(function: Callable[..., Any], *args: Any) -> float:
  """Returns the operations of `function(*args)`, without running it.

  Raises:
    UnknownError: if they cannot be counted.
  """
  return _count(jax.make_jaxpr(function)(*args).jaxpr)


@functools.lru_cache
def _outer_step(program: str) -> float | None:
  built = build.build(json.loads(program), num_devices=1)
  (root,) = build.root_keys(built.training)
  task_params = built.system.draw_tasks(root).task_params
  step = jax.vmap(
      built.system.step, (None, None, 0), axis_name=outer_loop.DEVICE_AXIS
  )
  try:
    return count(
        step, jax.eval_shape(built.system.init, root), task_params, root[None]
    )
  except UnknownError:
    return None


def _count(jaxpr: core.Jaxpr) -> float:
  return sum(map(_count_equation, jaxpr.eqns))


def _count_equation(equation: core.JaxprEqn) -> float:
  name = equation.primitive.name
  shapes: list[tuple[int, ...]] = [
      getattr(v.aval, 'shape', ()) for v in equation.invars
  ]
  outputs = sum(
      math.prod(getattr(v.aval, 'shape', ())) for v in equation.outvars[:1]
  )
  if name == 'dot_general':
    (contracted, _), _ = equation.params['dimension_numbers']
    return 2 * outputs * math.prod(shapes[0][axis] for axis in contracted)
  if name == 'conv_general_dilated':
    kernel = equation.params['dimension_numbers'].rhs_spec
    return 2 * outputs * math.prod(shapes[1]) / shapes[1][kernel[0]]
  if name in _FACTORISATIONS:
    rank = shapes[0][-1]
    number = outputs / (rank if name == 'triangular_solve' else rank**2)
    return number * _FACTORISATIONS[name](rank)
  inside = [_count(jaxpr) for jaxpr in _subprograms(equation)]
  if name in _OPAQUE:
    raise UnknownError(f'{name} hides what it computes')
  if name == 'cond':
    return max(inside)
  if name == 'while' and any(inside):
    raise UnknownError('the length of a loop depends on data')
  return equation.params.get('length', 1) * sum(inside)


def _subprograms(equation: core.JaxprEqn) -> Iterator[core.Jaxpr]:
  for value in equation.params.values():
    for part in value if isinstance(value, (tuple, list)) else [value]:
      part = getattr(part, 'jaxpr', part)
      if isinstance(part, core.Jaxpr):
        yield part

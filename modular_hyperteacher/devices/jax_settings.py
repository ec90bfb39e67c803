"""The settings of JAX that decide which numbers are drawn and computed.

A process may have others: from JAX_ENABLE_X64, JAX_THREEFRY_PARTITIONABLE and
the like, or from a notebook's `jax.config.update`. Most of them draw other
tasks from the same seed. Our commands set theirs for the whole process (`fix`).
Functions that run in a user's process set them for their own time (`fixed`).
"""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import functools
import os
from typing import Any, ParamSpec, TypeVar
import warnings

import jax
from jax import core
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher.devices import platforms

_P = ParamSpec('_P')
_T = TypeVar('_T')
_GENERATOR: Mapping[str, tuple[Any, Any]] = {
    # Name -> value, and the context that sets it for a thread.
    'jax_default_prng_impl': ('threefry2x32', jax.default_prng_impl),
    'jax_threefry_partitionable': (True, jax.threefry_partitionable),
}
_SETTINGS: Mapping[str, tuple[Any, Any]] = {
    **_GENERATOR,
    'jax_disable_jit': (False, jax.disable_jit),
    'jax_enable_x64': (False, jax.enable_x64),
    'jax_numpy_dtype_promotion': ('standard', jax.numpy_dtype_promotion),
}
# JAX sets these for a process only. Some versions lack the second.
_OF_PROCESS = {
    name: value
    for name, value in (
        ('jax_random_seed_offset', 0),
        ('jax_high_dynamic_range_gumbel', False),
    )
    if hasattr(jax.config, name)
}
_NARROW = {
    np.dtype(kind + '8'): np.dtype(kind + '4') for kind in ('f', 'i', 'u')
}
# The process that first computed with this package.
_process: list[int] = []


def fix() -> None:
  """Fixes the settings of a process that runs one of our commands.

  Raises:
    UserError: if Python or JAX runs in a mode in which commands cannot run.
  """
  check_asserts()
  errors.require(
      not _value('jax_disable_jit'),
      'JAX_DISABLE_JIT',
      os.environ.get('JAX_DISABLE_JIT', 'set'),
      'training and evaluation are compiled programs, so unset it',
  )
  platforms.allow_cpu()
  wanted = {name: value for name, (value, _) in _SETTINGS.items()}
  for name, value in {**wanted, **_OF_PROCESS}.items():
    jax.config.update(name, value)


def check_asserts() -> None:
  """Raises UserError under `python -O`, which breaks haiku.

  Haiku leaves a module's name inside an `assert`.
  """
  if not __debug__:
    raise errors.UserError(
        'Python runs without assertions (-O or PYTHONOPTIMIZE), on which haiku'
        ' relies; run without it.'
    )


@contextlib.contextmanager
def fixed() -> Iterator[None]:
  """Computes its block under the fixed settings; also a decorator.

  Settings are a thread's own: a thread that the block starts needs a block.

  Raises:
    UserError: if a setting can be set for the whole process only, or if JAX
      cannot run, because this process was forked from one that computed.
  """
  _check_fork()
  for name, value in _OF_PROCESS.items():
    if _value(name) != value:
      raise errors.UserError(
          f'{name} is {_value(name)}, which draws other numbers than'
          f' those of this package; set {name.upper()}={value}.'
      )
  with _entered(_SETTINGS):
    yield


@contextlib.contextmanager
def fixed_draws() -> Iterator[None]:
  """Does what `fixed` does for random numbers, in any precision."""
  _check_fork()
  with _entered(_GENERATOR):
    yield


def always(function: Callable[_P, _T]) -> Callable[_P, _T]:
  """Returns a function of the library that runs under the fixed settings.

  Inside of a user's `jax.jit`, it refuses to run under other settings: some
  take effect after it has returned, when JAX compiles the user's function.
  """

  @functools.wraps(function)
  def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
    others = [n for n, (value, _) in _SETTINGS.items() if _value(n) != value]
    if others and any(map(_is_compiled, jax.tree.leaves((args, kwargs)))):
      wanted = ', '.join(f'{n.upper()}={_SETTINGS[n][0]}' for n in others)
      raise errors.UserError(
          f'{function.__name__} is called inside of jax.jit, but JAX has other'
          f' settings than this package; call it outside, or set {wanted}.'
      )
    with fixed():
      return function(*args, **kwargs)

  return call


def in_32_bits(tree: Any) -> Any:
  """Returns a tree whose arrays of 64 bits, from a user, have 32."""

  def convert(x: Any) -> Any:
    is_wide = isinstance(x, jax.Array) and x.dtype in _NARROW
    return jnp.asarray(x, _NARROW[x.dtype]) if is_wide else x

  return jax.tree.map(convert, tree)


def warn_of_nan(field: str, array: Any) -> None:
  """Warns if a user's array has NaN, from which numbers are computed."""
  if isinstance(array, core.Tracer):
    return
  array = np.asarray(array)
  if array.dtype.kind == 'f' and (count := int(np.isnan(array).sum())):
    warnings.warn(
        f'{field}: {count} of {array.size} numbers are NaN; what is computed'
        ' from them means nothing.',
        stacklevel=1,
    )


def _is_compiled(leaf: Any) -> bool:
  """Whether a value is traced for compilation, not only mapped over tasks."""
  while isinstance(leaf, core.Tracer):
    inner = getattr(leaf, 'val', None)
    if not isinstance(inner, (jax.Array, np.ndarray)):
      return True
    leaf = inner  # `vmap` wraps the value.
  return False


@contextlib.contextmanager
def _entered(settings: Mapping[str, tuple[Any, Any]]) -> Iterator[None]:
  with contextlib.ExitStack() as stack:
    for name, (value, context) in settings.items():
      if _value(name) != value:
        stack.enter_context(context(value))
    yield


def _value(name: str) -> Any:
  """Returns a setting of this thread."""
  return getattr(jax.config, name)


def _check_fork() -> None:
  """Raises UserError in a fork of a process that computed: JAX would hang."""
  if not _process:
    _process.append(os.getpid())
  if _process[0] != os.getpid():
    raise errors.UserError(
        'this process was forked from one that computed with JAX, whose threads'
        " it lacks; start processes by 'spawn', as in"
        " multiprocessing.get_context('spawn') or PyTorch's"
        " DataLoader(multiprocessing_context='spawn')."
    )

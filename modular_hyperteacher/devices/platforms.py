"""The platforms of JAX: which are asked for, and which there are."""

from typing import Any

import jax

from modular_hyperteacher import errors

_CPU = 'cpu'
_UNKNOWN = 'Unable to initialize backend'  # How JAX's message begins.


def allow_cpu() -> None:
  """Lets draws run on the CPU beside a GPU, whatever JAX_PLATFORMS says.

  Commands call it before JAX starts. The platforms asked for stay preferred.
  """
  if _asked() and _CPU not in _asked().split(','):
    jax.config.update('jax_platforms', f'{_asked()},{_CPU}')


def check() -> None:
  """Starts JAX; raises UserError if it lacks the platform asked for."""
  asked = _named()
  try:
    first = asked.partition(',')[0]  # The one that JAX prefers.
    lacks = first not in ('', _CPU) and jax.default_backend() == _CPU
  except (AssertionError, RuntimeError) as error:
    raise missing(error) from error
  errors.require(
      not lacks, 'JAX_PLATFORMS', f"'{asked}'", 'here JAX has only the CPU'
  )


def cpu() -> Any:
  """Returns the CPU device, or else the one that JAX was started with.

  Raises:
    UserError: if JAX cannot be started.
  """
  try:
    devices = jax.local_devices(backend=_CPU)
  except (AssertionError, RuntimeError):  # JAX_PLATFORMS names others only.
    try:
      devices = jax.local_devices()
    except (AssertionError, RuntimeError) as error:
      raise missing(error) from error
  return devices[0]


def missing(error: Exception) -> errors.UserError:
  """Returns what to tell a user if JAX does not start."""
  reason = ' '.join(str(error).split()) or 'there is no such device'
  return errors.UserError(
      f"JAX_PLATFORMS is '{_named()}', with which JAX does not start: {reason}."
      " Unset it, or set it to 'cpu'."
  )


def is_missing(error: Exception) -> bool:
  """Whether JAX did not start for lack of the platform asked for."""
  return isinstance(error, RuntimeError) and str(error).startswith(_UNKNOWN)


def _named() -> str:
  """Returns the platforms without what `allow_cpu` adds."""
  return _asked().removesuffix(f',{_CPU}')


def _asked() -> str:
  """Returns the platforms of JAX_PLATFORMS; '' if it is not set."""
  config: Any = jax.config  # Its options are defined at run time.
  return config.jax_platforms or ''

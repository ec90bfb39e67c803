"""Caches compiled programs on disk: most of a short run is compilation.

This is JAX's persistent cache, in the user's cache folder. It does not change
results, and the folder may be deleted at any time.
"""

import hashlib
import os
import pathlib
import socket
import stat
import sys

import jax

from modular_hyperteacher import errors

DEFAULT = '~/.cache/modular_hyperteacher'
# Programs that take less than this to compile are not worth a file.
_MIN_COMPILE_S = 0.02


def enable(cache: str = DEFAULT) -> None:
  """Shares compiled programs with other processes of this user.

  They depend on the kind of processor: each has a folder in the cache.

  Raises:
    UserError: if other users can write to the folder.
    OSError: if it cannot be created.
    RuntimeError: if it is in the home of a user who has none.
  """
  parent = pathlib.Path(cache).expanduser()
  folder = parent / _processor()
  parent.mkdir(mode=0o700, parents=True, exist_ok=True)
  folder.mkdir(mode=0o700, exist_ok=True)
  status, above = folder.stat(), parent.stat()
  # Who can write to the parent can replace the folder, unless it is sticky, as
  # /tmp is.
  is_sticky = above.st_mode & stat.S_ISVTX
  replaceable = above.st_uid not in (0, os.getuid()) or (
      above.st_mode & 0o022 and not is_sticky
  )
  writable = status.st_uid != os.getuid() or status.st_mode & 0o022
  if writable or replaceable:
    raise errors.UserError(
        'others can write to the compilation cache'
        f' {folder if writable else parent}, from which programs are executed.'
        ' Choose another folder, or correct its owner and mode (chmod 700).'
    )
  jax.config.update('jax_compilation_cache_dir', str(folder))
  jax.config.update(
      'jax_persistent_cache_min_compile_time_secs', _MIN_COMPILE_S
  )


def enable_by_default() -> None:
  """Calls `enable` unless JAX is configured or the folder is another user's."""
  if 'JAX_COMPILATION_CACHE_DIR' in os.environ:
    return
  try:
    enable()
  except errors.UserError as error:  # As after sudo.
    print(f'warning: it is not used: {error}', file=sys.stderr)
  except (OSError, RuntimeError):
    pass  # The home folder is read-only, or there is none: go without a cache.


def _processor() -> str:
  """Returns a hash of the processor's model and features, or the host name."""
  try:
    text = pathlib.Path('/proc/cpuinfo').read_text('utf-8')
  except OSError:
    return socket.gethostname()
  prefixes = ('model name', 'flags', 'Features')
  lines = {line for line in text.splitlines() if line.startswith(prefixes)}
  return hashlib.sha256('\n'.join(sorted(lines)).encode()).hexdigest()[:16]

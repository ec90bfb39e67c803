"""Keeps compiled programs between processes: most of a short run is compiling.

JAX's persistent cache, in the user's cache folder. A program from there is the
one that would be compiled, so results are the same, and the folder may be
deleted at any time.
"""

import hashlib
import os
import pathlib
import socket

import jax

from modular_hyperteacher import errors

DEFAULT = '~/.cache/modular_hyperteacher'
# Programs that take less than this to compile are not worth a file.
_MIN_COMPILE_S = 0.3


def enable(cache: str = DEFAULT) -> None:
  """Keeps the programs that this process compiles, for others of its user.

  Args:
    cache: holds a folder for each kind of processor, as machine code of one is
      not for another.

  Raises:
    UserError: if others could put programs into the folder.
    OSError: if it cannot be made.
  """
  folder = pathlib.Path(cache).expanduser() / _processor()
  folder.mkdir(mode=0o700, parents=True, exist_ok=True)
  status = folder.stat()
  if status.st_uid != os.getuid() or status.st_mode & 0o022:
    raise errors.UserError(
        f'others can write to the compilation cache {folder}, and what is in'
        ' there is executed. Choose another folder, or mend its owner and mode'
        ' (chmod 700).'
    )
  jax.config.update('jax_compilation_cache_dir', str(folder))
  jax.config.update(
      'jax_persistent_cache_min_compile_time_secs', _MIN_COMPILE_S
  )


def enable_by_default() -> None:
  """As `enable`, unless JAX's own settings say where, or there is no folder."""
  if 'JAX_COMPILATION_CACHE_DIR' in os.environ:
    return
  try:
    enable()
  except OSError:
    pass  # Such as a home folder that cannot be written to: compile anew.


def _processor() -> str:
  """Names the processor by what it can do; the machine where unknown."""
  try:
    text = pathlib.Path('/proc/cpuinfo').read_text()
  except OSError:
    return socket.gethostname()
  told = {
      line
      for line in text.splitlines()
      if line.startswith(('model name', 'flags', 'Features'))
  }
  return hashlib.sha256('\n'.join(sorted(told)).encode()).hexdigest()[:16]

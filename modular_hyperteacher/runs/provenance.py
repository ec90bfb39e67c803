"""Provenance of results: commit, versions, device, time."""

from collections.abc import Mapping
import datetime
import functools
from importlib import metadata
import os
import pathlib
import platform
import subprocess
import sys
from typing import Any

import jax

from modular_hyperteacher.devices import host_devices

ROOT = pathlib.Path(__file__).parents[1]  # The package's folder.
_PACKAGES = ('jax', 'jaxlib', 'dm-haiku', 'optax', 'numpy')
# The order of sums, and so the last bits of results, depends on these.
_DECISIVE = (
    *('processor', 'device_kind', 'num_devices', 'num_cores', 'num_processes'),
    *('jax', 'jaxlib'),
)


def describe() -> dict[str, Any]:
  """Returns the code version and the machine of this process."""
  device = jax.local_devices()[0]
  return {
      'started': (
          datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds')
      ),
      'commit': commit(ROOT),
      'versions': {name: metadata.version(name) for name in _PACKAGES},
      'python': platform.python_version(),
      'platform': device.platform,
      'device_kind': device.device_kind,
      'processor': _processor(),
      'num_devices': jax.device_count(),
      'num_cores': host_devices.num_cores(),
      'num_processes': jax.process_count(),
  }


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
  """Returns sentences on changes that affect the last bits of results."""
  old, new = ({**facts, **facts.get('versions', {})} for facts in (before, now))
  return [
      f'{field} is {new[field]}, was {old[field]}'
      for field in _DECISIVE
      if field in old and field in new and old[field] != new[field]
  ]


def _processor() -> str:
  try:
    lines = pathlib.Path('/proc/cpuinfo').read_text('utf-8').splitlines()
  except OSError:
    lines = ()  # Not Linux.
  about = {}
  for line in lines:
    field, _, value = line.partition(':')
    about.setdefault(field.strip(), value.strip())
  name = about.get('model name') or platform.processor() or platform.machine()
  # These differ between virtual machines with the same model name.
  extensions = about.get('flags', '').split()
  widest = [x for x in ('avx512f', 'avx2') if x in extensions][:1]
  return ', '.join([name, *widest])


def commit(folder: pathlib.Path) -> str | None:
  """Returns a folder's commit, with '+' if files in it differ.

  So do Python files in the folders that links in it point to.
  """
  linked = [
      f':(glob){os.path.relpath(path.resolve(), folder)}/**/*.py'
      for path in folder.glob('*')
      if path.is_symlink()
  ]
  try:
    # Installed into somebody else's repository, it is not part of that.
    _git(folder, 'ls-files', '--error-unmatch', '.')
    commit = _git(folder, 'rev-parse', '--short=12', 'HEAD')
    status = _git(folder, 'status', '--porcelain', '.', *linked)
    return commit + ('+' if status else '')
  except OSError:
    return None  # There is no git.
  except subprocess.CalledProcessError as error:
    if 'dubious ownership' in error.stderr:
      _warn_of_owner(folder)
    return None  # Not tracked.


@functools.cache
def _warn_of_owner(folder: pathlib.Path) -> None:
  print(
      f'warning: the commit is not recorded, as another user owns {folder}; to'
      ' record it: git config --global --add safe.directory REPOSITORY',
      file=sys.stderr,
  )


def _git(folder: pathlib.Path, *arguments: str) -> str:
  return subprocess.run(
      # `status` would lock the index, and leave the lock if it is killed.
      ['git', '--no-optional-locks', *arguments],
      cwd=folder,
      check=True,
      capture_output=True,
      text=True,
  ).stdout.strip()

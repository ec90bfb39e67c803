"""File systems of a test's own."""

from collections.abc import Iterator
import contextlib
import pathlib
import subprocess

import pytest


@contextlib.contextmanager
def mounted(folder: pathlib.Path, options: str) -> Iterator[pathlib.Path]:
  """A tmpfs with these mount options, where this process may mount one."""
  folder.mkdir()
  command = ['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', str(folder)]
  if subprocess.run(command, capture_output=True, check=False).returncode:
    pytest.skip('needs the right to mount a small file system (root)')
  try:
    yield folder
  finally:
    subprocess.run(['umount', '-l', str(folder)], check=True)


def enlarge(folder: pathlib.Path, size: str) -> None:
  """Makes room on a mounted file system."""
  options = f'remount,size={size}'
  subprocess.run(['mount', '-o', options, str(folder)], check=True)

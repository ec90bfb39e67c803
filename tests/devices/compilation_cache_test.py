"""Compiled programs are kept between processes, and only for their user."""

import os
import pathlib
import subprocess
import sys

import jax
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.devices import compilation_cache

_PROGRAM = """
import jax, jax.numpy as jnp
from modular_hyperteacher.devices import compilation_cache
compilation_cache.enable_by_default()
jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)
jax.jit(lambda x: jnp.sin(x) @ x)(jnp.ones((3, 3))).block_until_ready()
"""


def _run(home: pathlib.Path, **variables: str) -> None:
  kept = {k: v for k, v in os.environ.items() if 'COMPILATION_CACHE' not in k}
  subprocess.run(
      [sys.executable, '-c', _PROGRAM],
      env={**kept, 'HOME': str(home), **variables},
      check=True,
  )


def test_programs_are_kept_in_the_users_cache_folder(
    tmp_path: pathlib.Path,
) -> None:
  _run(tmp_path)
  (folder,) = (tmp_path / '.cache' / 'modular_hyperteacher').iterdir()
  written = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
  assert any('lambda' in path.name for path in written)
  _run(tmp_path)
  assert written == {path: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_jaxs_own_setting_comes_first(tmp_path: pathlib.Path) -> None:
  _run(tmp_path, JAX_COMPILATION_CACHE_DIR=str(tmp_path / 'own'))
  assert [path.name for path in tmp_path.iterdir()] == ['own']


def test_a_home_that_is_no_folder_does_without(tmp_path: pathlib.Path) -> None:
  home = tmp_path / 'home'
  home.write_text('')
  _run(home)


def test_a_user_without_a_home_does_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  def fail(_: pathlib.Path) -> None:
    raise RuntimeError('Could not determine home directory.')

  monkeypatch.delenv('JAX_COMPILATION_CACHE_DIR')
  monkeypatch.setattr(pathlib.Path, 'expanduser', fail)
  compilation_cache.enable_by_default()


def test_a_cache_that_is_not_safe_is_not_used_by_default(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
  """As after sudo, in the home of another user; the work goes on."""
  monkeypatch.delenv('JAX_COMPILATION_CACHE_DIR')
  monkeypatch.setenv('HOME', str(tmp_path))
  monkeypatch.setattr(os, 'getuid', lambda: tmp_path.stat().st_uid + 1)
  updated = []
  monkeypatch.setattr(
      jax.config, 'update', lambda *given: updated.append(given)
  )
  compilation_cache.enable_by_default()
  assert not updated
  told = capsys.readouterr().err
  assert told.startswith(
      'warning: it is not used: others can write to the comp'
  )
  assert told.count('\n') == 1


def test_others_may_not_replace_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.setattr(jax.config, 'update', lambda name, value: None)
  for mode in (0o777, 0o770):
    tmp_path.chmod(mode)
    with pytest.raises(errors.UserError, match=f'can write.*{tmp_path},'):
      compilation_cache.enable(str(tmp_path))
  tmp_path.chmod(0o1777)
  compilation_cache.enable(str(tmp_path))


def test_what_it_creates_is_the_users_alone(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.setattr(jax.config, 'update', lambda name, value: None)
  before = os.umask(0o002)
  try:
    compilation_cache.enable(str(tmp_path / 'cache'))
  finally:
    os.umask(before)
  assert (tmp_path / 'cache').stat().st_mode & 0o077 == 0


def test_others_may_not_write_to_it(tmp_path: pathlib.Path) -> None:
  folder = tmp_path / compilation_cache._processor()
  folder.mkdir()
  folder.chmod(0o777)
  with pytest.raises(errors.UserError, match='others can write'):
    compilation_cache.enable(str(tmp_path))

"""Platforms that JAX lacks are named in one line."""

from typing import Any

import jax
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.devices import platforms
from tests.helpers import commands
from tests.helpers import training


@pytest.mark.slow
@pytest.mark.parametrize(
    'name, message',
    [
        ('cuda', "JAX_PLATFORMS is 'cuda'; here JAX has only the CPU"),
        ('foo', r"JAX_PLATFORMS is 'foo', .* backends: \['cpu'"),
    ],
)
def test_training_on_a_platform_that_is_missing(
    name: str, message: str
) -> None:
  if name == 'cuda' and jax.default_backend() != 'cpu':
    pytest.skip('here is a GPU')
  command = training.command('--describe')[1:]
  done = commands.python(*command, JAX_PLATFORMS=name)
  training.assert_refused(done.returncode, done.stderr, message)


def test_the_cpu_may_be_preferred_to_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  monkeypatch.setattr(jax, 'default_backend', lambda: 'cpu')
  monkeypatch.setattr(platforms, '_named', lambda: 'cpu,cuda')
  platforms.check()
  monkeypatch.setattr(platforms, '_named', lambda: 'cuda,cpu')
  with pytest.raises(errors.UserError, match="'cuda,cpu'; here JAX has only"):
    platforms.check()


def test_draws_do_not_need_the_cpu_among_the_platforms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  """As with JAX_PLATFORMS=cuda, in a process that has started JAX."""
  first, *_ = jax.local_devices()
  assert platforms.cpu() == first

  def lacks_cpu(backend: str | None = None) -> list[Any]:
    if backend == 'cpu':
      raise RuntimeError('Unknown backend cpu')
    return ['gpu']

  monkeypatch.setattr(jax, 'local_devices', lacks_cpu)
  assert platforms.cpu() == 'gpu'

  def lacks_all(backend: str | None = None) -> list[Any]:
    raise AssertionError

  monkeypatch.setattr(jax, 'local_devices', lacks_all)
  with pytest.raises(errors.UserError, match='there is no such device. Unset'):
    platforms.cpu()


def test_commands_add_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
  monkeypatch.setattr(platforms, '_asked', lambda: 'cuda')
  updated = []
  monkeypatch.setattr(
      jax.config, 'update', lambda *given: updated.append(given)
  )
  platforms.allow_cpu()
  assert updated == [('jax_platforms', 'cuda,cpu')]
  for asked in ('', 'cpu', 'cuda,cpu'):
    monkeypatch.setattr(platforms, '_asked', lambda asked=asked: asked)
    platforms.allow_cpu()
  assert len(updated) == 1

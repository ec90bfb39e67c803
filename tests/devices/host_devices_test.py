"""The cores of a machine."""

import os

import jax
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.devices import host_devices


def test_cores_are_counted_where_there_is_no_affinity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  assert host_devices.num_cores() == len(os.sched_getaffinity(0))
  monkeypatch.delattr(os, 'sched_getaffinity')
  assert host_devices.num_cores() == os.cpu_count()
  assert host_devices.cores() == [*range(host_devices.num_cores())]


def test_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
  updated = []
  monkeypatch.setattr(
      jax.config, 'update', lambda *given: updated.append(given)
  )
  monkeypatch.delenv('XLA_FLAGS', raising=False)
  host_devices.divide(None, 2)
  assert updated == [('jax_num_cpu_devices', 2)]
  for variable, value in (
      ('JAX_NUM_CPU_DEVICES', '3'),
      ('XLA_FLAGS', '--xla_force_host_platform_device_count=3'),
  ):
    with monkeypatch.context() as patch:
      patch.setenv(variable, value)
      host_devices.divide(None, 2)
      with pytest.raises(errors.UserError, match=f'but {variable} also sets'):
        host_devices.divide(2, 2)
  assert len(updated) == 1

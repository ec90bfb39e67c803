"""The cores of a machine."""

import os

import pytest

from modular_hyperteacher.devices import host_devices


def test_cores_are_counted_where_there_is_no_affinity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  assert host_devices.num_cores() == len(os.sched_getaffinity(0))
  monkeypatch.delattr(os, 'sched_getaffinity')
  assert host_devices.num_cores() == os.cpu_count()
  assert host_devices.cores() == [*range(host_devices.num_cores())]

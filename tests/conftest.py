"""Eight host devices, strict shapes, and cheap compilation, for all tests."""

import atexit
from collections.abc import Iterator
import os
import shutil
import tempfile

from modular_hyperteacher.devices import compilation_options

# Around what the user set; must happen before JAX starts its backend. Most of
# the tests' time is compilation of programs that then run for milliseconds.
os.environ['XLA_FLAGS'] = ' '.join((
    compilation_options.as_flags(),
    '--xla_llvm_disable_expensive_passes=true',
    os.environ.get('XLA_FLAGS', ''),
    '--xla_force_host_platform_device_count=8',
))
# Many tests need the same programs, down to single operations: workers and
# commands that tests start share what is compiled.
if 'JAX_COMPILATION_CACHE_DIR' not in os.environ:
  _COMPILED = tempfile.mkdtemp(prefix='compiled-')
  atexit.register(shutil.rmtree, _COMPILED, ignore_errors=True)
  os.environ['JAX_COMPILATION_CACHE_DIR'] = _COMPILED
  os.environ['JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS'] = '0'

import jax  # pylint: disable=wrong-import-position
import pytest  # pylint: disable=wrong-import-position

jax.config.update('jax_numpy_rank_promotion', 'raise')


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
  """One more than cores, as some tests wait for what they started."""
  return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True, scope='module')
def fixture_forget_programs() -> Iterator[None]:
  """Frees what a file's tests compiled: gigabytes, after a few of them."""
  yield
  jax.clear_caches()

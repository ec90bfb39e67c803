"""The same numbers under every setting of the process, or a refusal."""

import pathlib
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import worlds
from modular_hyperteacher.devices import jax_settings
from modular_hyperteacher.launch import worker
from tests.helpers import commands
from tests.helpers import training

_README = (commands.ROOT / 'README.md').read_text(encoding='utf-8')
(_TEN_LINES,) = re.findall('```python\n(.*?)```', _README, re.DOTALL)
_TOLD = """
import numpy as np
print(float(student.score(fast_params, task.query)['accuracy']))
print(np.flatnonzero(task.latent).tolist())
decoded = student.fit_decoder()(fast_params)[0]
print([round(float(x), 2) for x in decoded])
print(round(student.evaluate()['ood']['accuracy'], 2))
from modular_hyperteacher import worlds
world = worlds.make('hyperteacher', preset='smoke')
print({np.asarray(x).dtype.name for x in world.sample('ood', 2)})
print(jax.numpy.ones(1).dtype)
"""
_NUMBERS = [
    '0.8125',
    '[1, 2, 6]',
    '[0.12, 0.91, 0.57, 0.01, 0.13, 0.25, 0.9, 0.08]',
    '0.84',
]
_CONTEXTS = {
    'x64': lambda: jax.enable_x64(True),
    'partitionable': lambda: jax.threefry_partitionable(False),
    'prng': lambda: jax.default_prng_impl('rbg'),
    'promotion': lambda: jax.numpy_dtype_promotion('strict'),
    'jit': lambda: jax.disable_jit(True),
}


def _draw() -> list[np.ndarray]:
  world = worlds.make('hyperteacher', preset='smoke', seed=3)
  tasks = world.sample('ood', 2, seed=1)
  score = world.score(tasks.query_targets, tasks)
  return [*tasks, np.array(list(score.values()))]


def test_worlds_are_the_same_under_every_setting_of_a_user() -> None:
  """And the user's own setting is what it was, outside of our calls."""
  expected = _draw()
  for name, context in _CONTEXTS.items():
    with context():
      drawn = _draw()
      config: Any = jax.config
      own = config.jax_enable_x64, config.jax_disable_jit
    assert own == (name == 'x64', name == 'jit')
    for array, other in zip(expected, drawn, strict=True):
      assert array.dtype == other.dtype
      np.testing.assert_array_equal(array, other, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    'variables, dtype',
    [
        ({}, 'float32'),
        ({'JAX_ENABLE_X64': '1'}, 'float64'),
        ({'JAX_THREEFRY_PARTITIONABLE': '0'}, 'float32'),
        ({'JAX_NUMPY_DTYPE_PROMOTION': 'strict'}, 'float32'),
        ({'JAX_DISABLE_JIT': '1'}, 'float32'),
    ],
    ids=lambda case: ''.join(case) or 'none',
)
def test_numbers_of_the_readme(
    tmp_path: pathlib.Path, variables: dict[str, str], dtype: str
) -> None:
  # Bundled models have digests, and a difference would be a warning.
  program = tmp_path / 'program.py'
  program.write_text(_TEN_LINES + _TOLD, encoding='utf-8')
  done = commands.python(
      '-W', 'error:::modular_hyperteacher', program, cwd=tmp_path, **variables
  )
  assert done.returncode == 0, done.stderr
  *numbers, drawn, own = done.stdout.splitlines()
  assert numbers == _NUMBERS
  assert drawn == "{'bool', 'float32'}" or drawn == "{'float32', 'bool'}"
  assert own == dtype


@pytest.mark.slow
def test_keys_of_another_generator_are_refused(tmp_path: pathlib.Path) -> None:
  done = commands.python(
      '-c', _TEN_LINES, cwd=tmp_path, JAX_DEFAULT_PRNG_IMPL='rbg'
  )
  assert done.returncode == 1
  assert 'key is key<rbg>; it must be a seed, or a key' in done.stderr


@pytest.mark.slow
def test_training_is_the_same_under_every_setting(
    tmp_path: pathlib.Path,
) -> None:
  """And a run is resumed under any."""
  tables = []
  cases: list[dict[str, str]] = [
      {},
      {'JAX_ENABLE_X64': '1', 'JAX_NUMPY_DTYPE_PROMOTION': 'strict'},
      {'JAX_THREEFRY_PARTITIONABLE': '0', 'JAX_RANDOM_SEED_OFFSET': '7'},
  ]
  for i, variables in enumerate(cases):
    command = training.command(
        *training.ONE_RUN, f'--results={tmp_path / str(i)}'
    )
    done = commands.python(*command[1:], cwd=commands.ROOT, **variables)
    assert done.returncode == 0, done.stderr
    folder = commands.run_folder(tmp_path / str(i))
    tables.append((folder / 'metrics.csv').read_bytes())
  assert tables[1] == tables[0] and tables[2] == tables[0]
  folder = commands.run_folder(tmp_path / '0')
  (folder / 'summary.json').unlink()
  (folder / 'checkpoints' / '60.npz').unlink()
  command = training.command(*training.ONE_RUN, f'--results={tmp_path / "0"}')
  done = commands.python(
      *command[1:], cwd=commands.ROOT, **(cases[1] | cases[2])
  )
  assert done.returncode == 0 and 'damaged' not in done.stderr, done.stderr
  assert (folder / 'metrics.csv').read_bytes() == tables[0]


def test_modes_in_which_nothing_works_are_refused_at_the_start(
    tmp_path: pathlib.Path,
) -> None:
  command = training.command(*training.ONE_RUN, f'--results={tmp_path}')[1:]
  done = commands.python('-O', *command)
  training.assert_refused(done.returncode, done.stderr, r'\(-O or PYTHONOPT')
  done = commands.python(*command, JAX_DISABLE_JIT='1')
  training.assert_refused(
      done.returncode, done.stderr, 'JAX_DISABLE_JIT is 1; training'
  )
  done = commands.python(
      '-O', '-c', _TEN_LINES, cwd=tmp_path, PYTHONPATH=str(commands.ROOT)
  )
  assert 'UserError: Python runs without assertions' in done.stderr
  assert not list(tmp_path.iterdir())


def test_workers_refuse_them_too() -> None:
  settings = worker.Settings('results', 1, '')
  with jax.disable_jit():
    outcomes = worker.train([{'run_id': 'a'}], settings)
  assert outcomes['a'].startswith(f'{worker.REFUSED}JAX_DISABLE_JIT is')


def test_what_cannot_be_set_for_a_call_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  monkeypatch.setattr(
      jax_settings, '_OF_PROCESS', {'jax_random_seed_offset': 1}
  )
  with pytest.raises(errors.UserError, match='set JAX_RANDOM_SEED_OFFSET=1'):
    worlds.make('hyperteacher', preset='smoke')


def test_inside_of_a_users_jit() -> None:
  """JAX would compile what is drawn after our settings have ended."""

  @jax_settings.always
  def draw(seed: Any) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), (3,))

  expected = jax.vmap(draw)(jnp.arange(2))
  np.testing.assert_array_equal(jax.jit(draw)(0), expected[0])
  with jax.enable_x64(True):
    seeds = jnp.arange(2, dtype='int32')
    assert jax.vmap(draw)(seeds).dtype == 'float32'
    for function in (draw, jax.vmap(draw)):
      with pytest.raises(errors.UserError, match='set JAX_ENABLE_X64=False'):
        jax.jit(function)(seeds)


def test_a_forked_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
  worlds.make('hyperteacher', preset='smoke')
  monkeypatch.setattr('os.getpid', lambda: -1)
  with pytest.raises(errors.UserError, match="start processes by 'spawn'"):
    worlds.make('hyperteacher', preset='smoke')


def test_arrays_of_a_user_are_narrowed() -> None:
  with jax.enable_x64(True):
    wide = {'a': jnp.ones(2), 'b': jnp.arange(2), 'c': jax.random.key(1)}
  narrow = jax_settings.in_32_bits(wide)
  assert (narrow['a'].dtype, narrow['b'].dtype) == ('float32', 'int32')
  assert narrow['c'] is wide['c']

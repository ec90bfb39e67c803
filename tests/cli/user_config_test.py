"""A user's config may hold or do anything: what is wrong is one line."""

import pathlib

import pytest

from tests.helpers import forks
from tests.helpers import training

_BASE = """
from modular_hyperteacher.configs import fig3b

def get_config(preset='smoke'):
  c = fig3b.get_config('smoke')
  c.experiment = 'mine'
  c.unlock()
  with c.ignore_type():
    {}
  return c
"""

# What is done to a sound config -> what is said.
_CHANGES = [
    ('del c.task', 'config.task is missing'),
    ('del c.models', 'config.models is missing'),
    ('del c.training', 'config.training is missing'),
    ('del c.execution', 'config.execution is missing'),
    ('del c.sweep', 'config.sweep is missing'),
    ('del c.experiment', 'config.experiment is missing'),
    ('del c.preset', 'config.preset is missing'),
    ('del c.task.name', 'config.task.name is None; it must be text'),
    ('del c.models.maml.name', 'config.models.maml.name is None'),
    ('del c.models.maml.inner', 'model.inner is missing'),
    ('del c.training.seeds', 'training.seeds is missing'),
    ('del c.training.meta_batch_size', 'training.meta_batch_size is missing'),
    ('c.models = {}', 'config.models is empty'),
    ('c.models = 5', 'config.models is 5; it must be a block of fields'),
    ('c.task = "hyperteacher"', "config.task is 'hyperteacher'"),
    ('c.models.maml = 3', 'config.models.maml is 3; it must be a block'),
    ('c.experiment = "../../evil"', "config.experiment is '../../evil'"),
    ('c.experiment = "/tmp/evil"', "config.experiment is '/tmp/evil'"),
    ('c.experiment = ""', "config.experiment is ''; it must be a plain name"),
    ('c.experiment = "x" * 300', "config.experiment is 'xxx.*of at most 200"),
    ('c.experiment = "a\\0b"', r"config.experiment is 'a\\x00b'"),
    ('c.experiment = 5', 'config.experiment is 5'),
    ('c.preset = ".."', "config.preset is '..'"),
    ('c.sweep = "model"', "sweep is 'model'"),
    ('c.sweep = None', 'sweep is None'),
    ('c.sweep = ({"model": "maml"},)', 'sweep is .*must be a tuple'),
    ('c.sweep = ({"model": ["x"]},)', "sweep: model is 'x'; choose"),
    ('c.sweep = ({"model": [[1]]},)', 'sweep'),
    ('c.sweep = ({"task.x": [1]},)', 'sweep'),
    (
        'c.sweep = ({"model": ["maml"], "task.task_support": ["a/b"]},)',
        'name of a run, from the sweep is .maml-a/b',
    ),
    (
        'c.sweep = ({"model": ["maml"], "task.input_dim": [1] * 10**6},)',
        'config.sweep has 1000000 runs',
    ),
    ('c.training.num_outer_steps = 4.5', 'num_outer_steps is 4.5; .*whole'),
    ('c.training.num_outer_steps = True', 'num_outer_steps is True'),
    ('c.training.num_outer_steps = 10**30', 'is 1000000.*; .*less than 64'),
    ('c.training.seeds = 5', 'seeds is 5; it must be a list'),
    ('c.training.seeds = (1, 1)', r'training.seeds is \(1, 1\)'),
    ('c.training.seeds = ("a",)', "seeds.0. is 'a'"),
    ('c.training.prng_impl = 3', 'training.prng_impl is 3; it must be text'),
    ('c.task.fraction_ood = float("inf")', 'fraction_ood is inf'),
    ('c.task.num_modules = "6"', "task.num_modules is '6'; .*whole number"),
    ('c.task.num_modules = lambda: 6', 'task.num_modules is <function'),
    (
        'import numpy; c.task.num_modules = numpy.int64(6)',
        "num_modules is .*6.*; it must be Python's number",
    ),
    ('import numpy; c.task.x = numpy.ones(3)', 'config.task.x is array'),
    ('c.task.x = object()', 'config.task.x is <object'),
    ('c.task.x = 1', 'task.x does not exist'),
    ('c.execution.log_every = "5"', "execution.log_every is '5'"),
    ('c = c.to_dict()', 'returns {.*must return an ml_collections'),
    ('c = "fig3b"', "get_config returns 'fig3b'"),
    ('c = None', 'get_config returns None'),
    ('raise KeyError(3)', 'get_config raises KeyError: 3'),
    ('raise SystemExit(0)', 'get_config raises SystemExit: 0'),
    ('raise ValueError("mine\\nof two lines")', 'mine'),
    ('return get_config()', 'get_config raises RecursionError'),
    ('import os; os.kill(0, "x")', 'get_config raises TypeError'),
]
_FILES = [
    ('', 'has no get_config'),
    ('get_config = 5', 'has no get_config'),
    ('def get_config(): pass', 'get_config returns None'),
    ('def get_config(preset): return preset', 'get_config raises TypeError'),
    ('\0', 'is not a config; running it raises'),
    ('import no_such_module', 'raises ModuleNotFoundError'),
]


@pytest.fixture(scope='module', name='refusals')
def fixture_refusals(
    tmp_path_factory: pytest.TempPathFactory,
) -> list[tuple[forks.Done, str, list[str]]]:
  """How commands ended, what they should say, and files they wrote."""
  folder = tmp_path_factory.mktemp('configs')
  sources = [(_BASE.format(change), said) for change, said in _CHANGES]
  sources += _FILES
  commands = []
  for i, (source, _) in enumerate(sources):
    path = folder / f'config{i}.py'
    path.write_text(source)
    results = f'--results={folder}/results{i}/in/here'
    commands.append([f'--config={path}', '--only=model=maml', results])
  return [
      (done, said, training.files(folder / f'results{i}'))
      for i, (done, (_, said)) in enumerate(
          zip(forks.run(folder, commands), sources)
      )
  ]


@pytest.mark.slow
@pytest.mark.parametrize('index', range(len(_CHANGES) + len(_FILES)))
def test_made_configs(
    index: int, refusals: list[tuple[forks.Done, str, list[str]]]
) -> None:
  done, said, written = refusals[index]
  training.assert_refused(done.code, done.stderr, said)
  assert len(done.stderr.splitlines()) == 1
  assert not written


_FLAGS = [
    (['--coordinator=foo', '--num_processes=2', '--process_id=0'], 2, 'HOST'),
    ([f'--results={"x" * 300}'], 2, "--results is 'xxx.*which cannot be a"),
    (['--host_devices=100000'], 2, r'\[1, 256\]'),
    (['--config.training.seeds=5'], 2, "seeds is '5'; it must be a tuple"),
    (['--help'], 0, ''),
]


def test_flags(tmp_path: pathlib.Path) -> None:
  commands = [
      ['--config=configs/fig3b.py:smoke', *arguments]
      for arguments, _, _ in _FLAGS
  ]
  for done, (_, code, said) in zip(forks.run(tmp_path, commands), _FLAGS):
    if code:
      training.assert_refused(done.code, done.stderr, said)
    else:
      assert done == (0, '')

"""The learner in PyTorch, for a few steps; wrong input of examples."""

import pathlib
import runpy
import subprocess
import sys

import pytest

from modular_hyperteacher import worlds
from tests.helpers import commands


@pytest.mark.slow
def test_a_learner_in_pytorch_trains_and_is_scored(
    tmp_path: pathlib.Path,
) -> None:
  pytest.importorskip('torch', reason='PyTorch is an extra: .[torch]')
  result = subprocess.run(
      [
          *(sys.executable, commands.ROOT / 'examples' / 'pytorch_learner.py'),
          *('--steps=100', '--batch_size=16', '--width=32', '--layers=2'),
          *('--num_tasks=64', f'--out={tmp_path}'),
      ],
      env=commands.environment(PYTHONPATH=str(commands.ROOT)),
      capture_output=True,
      text=True,
  )
  assert result.returncode == 0, result.stderr
  losses = [
      float(line.rpartition(' ')[2])
      for line in result.stdout.splitlines()
      if 'cross-entropy' in line
  ]
  assert losses[-1] < losses[0]
  for split in ('test', 'ood'):
    path = tmp_path / f'set_transformer.random.{split}.2020.npz'
    scored = worlds.score_file(path)
    assert scored.num_tasks == 64
    assert scored.metrics['accuracy'] > 2 / 8  # Twice as good as guessing.
    assert f"{split} {{'accuracy': {scored.metrics['accuracy']}" in (
        result.stdout
    )


def _refusal(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    *arguments: str,
) -> str:
  """Returns the line that an example prints before it exits with code 2."""
  path = str(commands.ROOT / 'examples' / f'{name}.py')
  monkeypatch.setattr(sys, 'argv', [path, *arguments])
  with pytest.raises(SystemExit, match='2'):
    runpy.run_path(path, run_name='__main__')
  (line,) = capsys.readouterr().err.splitlines()
  return line


def test_pytorch_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
  monkeypatch.setitem(sys.modules, 'torch', None)
  line = _refusal(monkeypatch, capsys, 'pytorch_learner')
  assert line.startswith('error: PyTorch is not installed: pip install -e')


@pytest.mark.parametrize('argument', ['--task_support=x', '--seed=-1'])
def test_a_learner_in_pytorch_refuses_wrong_input(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argument: str,
) -> None:
  pytest.importorskip('torch', reason='PyTorch is an extra: .[torch]')
  line = _refusal(monkeypatch, capsys, 'pytorch_learner', argument)
  name, value = argument.removeprefix('--').split('=')
  assert line.startswith('error: ') and name in line and value in line


_HALF_RIGHT = """
import types
from examples import combined_modules
from modular_hyperteacher import pretrained
from modular_hyperteacher.cli import script
loaded = types.SimpleNamespace(
    config={'training': {'seeds': %s}}, student=lambda seed: seed
)
pretrained.load = lambda *_, **__: loaded
combined_modules.accuracy_by_modules = lambda *_: [0.5]
script.run(combined_modules.main)
"""


@pytest.mark.parametrize(
    'seeds, line', [((7,), 'k = 1: 0.500'), ((7, 8), 'k = 1: 0.500 ± 0.000')]
)
def test_combined_modules_shows_an_error_from_two_seeds_on(
    seeds: tuple[int, ...], line: str
) -> None:
  run = commands.python('-W', 'error', '-c', _HALF_RIGHT % (seeds,))
  assert run.returncode == 0, run.stderr
  assert run.stdout.splitlines()[1:] == [line]


def test_combined_modules_refuses_a_negative_number_of_tasks() -> None:
  process = commands.start('--tasks=-1', module='examples.combined_modules')
  output, _ = process.communicate(timeout=100)
  assert process.returncode == 2 and 'error: flag --tasks=-1' in output

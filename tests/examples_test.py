"""The learner in PyTorch, for a few steps."""

import pathlib
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

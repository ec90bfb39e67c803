"""Runs of a preset that figures do not know are named, not ignored."""

import pathlib

import pytest

from tests.helpers import made_up
from tests.helpers import results


def test_an_unknown_preset_is_named(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
  made_up.write_runs(tmp_path, {('anil', 'random'): 0.6}, 'smoke')
  results.library(tmp_path)
  assert not capsys.readouterr().err
  (tmp_path / 'fig3b' / 'smoke').rename(tmp_path / 'fig3b' / 'tiny')
  library = results.library(tmp_path)
  assert 'fig3b/tiny' in capsys.readouterr().err
  assert library.values('fig3b').empty

"""No bundled result is lost when code moves or configs change."""

import pathlib

from figures.library import data
from modular_hyperteacher import pretrained

# Counted when results were last bundled; experiments share some runs.
_NUM_RUNS = 794
_NUM_TRAINED_MODELS = 13


def test_every_bundled_run_is_found(tmp_path: pathlib.Path) -> None:
  library = data.Library(tmp_path)
  experiments = [path.name for path in data.BUNDLED.iterdir() if path.is_dir()]
  numbers = {
      name: library.every_preset(name)['run_id'].nunique()
      for name in experiments
  }
  assert min(numbers.values()) > 0
  assert sum(numbers.values()) == _NUM_RUNS
  assert not library.stale()


def test_every_bundled_model_is_found(tmp_path: pathlib.Path) -> None:
  assert len(pretrained.available(tmp_path)) == _NUM_TRAINED_MODELS

"""No bundled result is lost when code moves or configs change."""

import pathlib
import re

from modular_hyperteacher import pretrained
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import reference

# Counted when results were last bundled; experiments share some runs.
_NUM_RUNS = 1314
_NUM_TRAINED_MODELS = 13


def test_every_bundled_run_is_found(tmp_path: pathlib.Path) -> None:
  library = data.Library(tmp_path)
  folders = [f for root in plugins.bundled_roots() for f in root.iterdir()]
  experiments = [folder.name for folder in folders if folder.is_dir()]
  numbers = {
      name: library.every_preset(name)['run_id'].nunique()
      for name in experiments
  }
  assert min(numbers.values()) > 0
  assert sum(numbers.values()) == _NUM_RUNS
  assert not library.stale()


def test_every_bundled_model_is_found(tmp_path: pathlib.Path) -> None:
  assert len(pretrained.available(tmp_path)) == _NUM_TRAINED_MODELS


def test_curves_hold_what_claims_compare(tmp_path: pathlib.Path) -> None:
  """So that effects can be drawn over training."""
  library = data.Library(tmp_path)
  for claim in claims.known():
    if not reference.described_runs(claim.experiment, 'paper'):
      continue  # Constructed, not trained.
    for comparison in verdicts.compare(claim, library):
      for sample in comparison.samples:
        if ' ' not in sample.metric:  # Else derived from others.
          assert re.fullmatch(bundles.CURVE_METRICS, sample.metric), claim.id
          assert re.fullmatch(bundles.CURVE_SPLITS, sample.split), claim.id

"""What was made faster still trains along the same curves.

`curves.json` holds training losses of the first outer steps of every world
and model, with their configs, computed by commit 216a326: before steps were
made faster (docs/performance.md). Sums in another order differ in the last
bits, and ten inner steps at a high rate amplify that from one outer step to the
next, as does Levenberg-Marquardt, which accepts a step or not by comparing two
losses; so the first are compared.
"""

import json
import pathlib
from typing import Any

import numpy as np
import pytest

from modular_hyperteacher.experiments import build
from modular_hyperteacher.learning import programs

_CURVES = json.loads(
    (pathlib.Path(__file__).parent / 'curves.json').read_text()
)
_RTOL = (1e-5, 2e-4)  # By outer step.


@pytest.mark.slow
@pytest.mark.parametrize('curve', _CURVES, ids=lambda curve: curve['name'])
def test_the_same_seed_gives_the_same_losses_as_before(
    curve: dict[str, Any],
) -> None:
  built = build.build(curve['config'], 1)
  compiled = programs.Programs(
      built.system,
      build.root_keys(built.training),
      build.draw_tasks(built),
  )
  solver = curve['config']['model']['inner'].get('solver')
  rtol = _RTOL[:1] if solver == 'levenberg_marquardt' else _RTOL
  state, losses = compiled.init(), []
  for _ in rtol:
    state, metrics = compiled.train(state, 1)
    losses += programs.fetch(metrics)['loss'].tolist()
  before = curve['losses'][: len(rtol)]
  errors = np.abs(np.subtract(losses, before)) / np.abs(before)
  assert (errors <= rtol).all(), errors

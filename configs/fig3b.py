"""Figure 3B: modular students recompose, monolithic ones do not.

Four models meta-learn the hyperteacher with M = 8 modules, up to two of them
combined in each layer of a task (three, in a single layer, at laptop scale).
With compositional support the hypernetworks solve module combinations that they
never saw and ANIL and MAML do not; with non-compositional support (the last
module of the last layer held out) the hypernetworks fall below.

Expected at laptop scale, OOD accuracy with compositional and with
non-compositional support: 0.82 and 0.54 (linear hypernetwork), 0.81 and 0.50
(nonlinear), 0.67 and 0.64 (ANIL), 0.65 and 0.61 (MAML). These eight runs of
three seeds took 23 to 37 minutes of one core, by machine. 'workstation' adds
ANIL and MAML 218 wide, as large as the linear hypernetwork: 150 minutes more.

  python -m modular_hyperteacher.main --config=configs/fig3b.py
  python -m modular_hyperteacher.main --config=configs/fig3b.py:pairs
  python figures/make_all.py --only=fig3b,fig3b_pairs
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.configs.blocks import variants
from modular_hyperteacher.experiments import sweeps

WORKSTATION = presets.WORKSTATION
DESKTOP = presets.DESKTOP
# Rule 2 of docs/verdicts.md.
_DESKTOP_STEPS = {'anil': 4000, 'maml': 8000}


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of a preset, or of a variant; see `VARIANTS`."""
  grids = models.recomposition_sweep(preset, matched_width=218)
  preset = presets.scale(preset)
  sweep = [part for grid in grids for part in _with_steps(preset, grid)]
  blocks = hyperteacher.blocks(preset, num_modules=8)
  return experiment.make('fig3b', preset, sweep, **blocks)


def _with_steps(preset: str, grid: sweeps.Grid) -> list[sweeps.Grid]:
  """Returns a grid, divided by the models' outer steps at 'desktop'."""
  if preset != DESKTOP:
    return [grid]
  usual = [m for m in grid['model'] if m not in _DESKTOP_STEPS]
  fewer = [m for m in grid['model'] if m in _DESKTOP_STEPS]
  return [grid | {'model': usual}] + [
      grid | {'model': [m], 'num_outer_steps': [_DESKTOP_STEPS[m]]}
      for m in fewer
  ]


def _pairs(preset: str) -> experiment.Config:
  """Combines pairs at laptop scale: do claims hold because of K = 3?

  As in the paper, K is 2, and all else is equal. Of pairs, training sees far
  fewer combinations. The hypernetworks' runs are Figure 3C's; at the published
  scale, all runs are Figure 3B's.
  """
  sweep = models.recomposition_sweep(preset, matched_width=218)
  blocks = hyperteacher.blocks(preset, num_modules=8, max_active=2)
  return experiment.make('fig3b', preset, sweep, **blocks)


VARIANTS = {'pairs': _pairs}
get_config = variants.add('fig3b', get_config, VARIANTS)

"""Table A1: does weight decay restore the alignment of large students?

Students larger than their teacher on discrete tasks (Figure 2D), with and
without weight decay in the outer loop. The paper finds that it does not help.
The published table has lost the sizes of its four columns, so the paper preset
runs the grid of Figure 2D.

At laptop scale, converged inference trains for 300 steps only. Students of four
times the teacher's size then have an alignment of 0.80, with and without weight
decay. After 2,000 steps they have 0.99, which cannot rise noticeably.
'workstation' adds the published solver, Adam.

  python -m modular_hyperteacher.main --config=configs/table_a1.py
  python figures/make_all.py --only=table_a1
"""

from collections.abc import Sequence
from typing import Any

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.configs.blocks import theory

WORKSTATION = presets.WORKSTATION


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns a config: 'smoke', 'laptop', 'workstation' or 'paper'."""
  solvers = theory.solvers(preset, 300, 1500)
  preset = presets.scale(preset)
  # Hidden units and modules, as multiples of the teacher's.
  sizes = presets.choose(
      preset,
      smoke=[((2,), (2,))],
      laptop=[((2,), (2,)), ((4,), (4,))],
      paper=[(theory.FACTORS, theory.FACTORS)],
  )
  sweep = [
      theory.grid(
          preset,
          solver,
          steps,
          **theory.size(*factors),
          **_regularised(preset, solver),
      )
      for solver, steps in solvers.items()
      for factors in sizes
  ]
  return experiment.make('table_a1', preset, sweep, **theory.blocks(preset))


def _regularised(preset: str, solver: str) -> dict[str, Sequence[Any]]:
  # 1e-3 times (60,000 steps at 1e-3) over (300 at 1e-2, or 1,500 at 3e-3).
  same = 2e-2 if solver == 'levenberg_marquardt' else 1.3e-2
  decays = presets.choose(
      preset,
      smoke=(0.0, 1e-3),
      laptop=(0.0, same),
      paper=(0.0, 1e-5, 1e-4, 1e-3),
  )
  axes: dict[str, Sequence[Any]] = {'outer.weight_decay': decays}
  if preset == 'laptop' and solver == 'levenberg_marquardt':
    axes['evaluate_every'] = (75,)  # The default is more than all 300 steps.
  return axes

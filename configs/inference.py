"""Beyond the paper: do large students fail because inference stops too early?

The paper finds lower alignment for large students of discrete tasks. It infers
latents by 300 steps of Adam, which can change each by about 0.9. Here, two
sizes of student are trained with more and more steps of Levenberg-Marquardt or
Adam, from a fixed or a random start.

  python -m modular_hyperteacher.main --config=configs/inference.py
  python figures/make_all.py --only=inference
"""

from typing import Any

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import theory

# Iterations of Levenberg-Marquardt; steps and learning rate of Adam.
_ITERATIONS = (2, 4, 12)
_ADAM = ((100, 0.003), (300, 0.003), (100, 0.01), (300, 0.01))


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  factors = (2,) if preset == 'smoke' else (2, 4)
  sweep = [
      theory.grid(
          preset,
          solver,
          steps,
          **theory.size((factor,), (factor,)),
          **effort,
          random_start=[False, True],
      )
      for solver, steps in (('levenberg_marquardt', 2000), ('adam', 1000))
      for factor in factors
      for effort in _efforts(preset, solver)
  ]
  return experiment.make('inference', preset, sweep, **theory.blocks(preset))


def _efforts(preset: str, solver: str) -> list[dict[str, Any]]:
  """Returns the axes of each effort."""
  if preset == 'smoke':
    return [{'num_steps': [2]}]
  if solver == 'levenberg_marquardt':
    return [{'num_steps': _ITERATIONS}]
  return [
      {'num_steps': [num_steps], 'inner.learning_rate': [learning_rate]}
      for num_steps, learning_rate in _ADAM
  ]

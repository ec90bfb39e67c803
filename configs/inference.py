"""Beyond the paper: does size hurt, or inference that stops too early?

The paper finds that large students of discrete tasks are aligned worse. Its
latents are inferred by 300 steps of Adam, which move each of them by at most
0.9. Here students of two sizes are trained with inference of growing effort, by
Levenberg-Marquardt and by Adam, from the fixed start and from a random one.

  python -m modular_hyperteacher.main --config=configs/inference.py
  python figures/make_all.py --only=inference
"""

import ml_collections

from configs.blocks import theory

_SIZES = ((2, 2), (4, 4))
_LAPTOP = {'levenberg_marquardt': (2000, 2), 'adam': (1000, 8)}
# Iterations of Levenberg-Marquardt; steps and learning rate of Adam.
_ITERATIONS = (2, 4, 12)
_ADAM = ((100, 0.003), (300, 0.003), (100, 0.01), (300, 0.01))


def get_config(preset: str = 'laptop') -> ml_collections.ConfigDict:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = theory.experiment('inference', preset)
  config.task.update(
      {'task_support': 'singles_ring', 'latent_type': 'discrete'}
  )
  if preset == 'laptop':
    config.training.seeds = (100, 101, 102)
  sizes = _SIZES[:1] if preset == 'smoke' else _SIZES
  config.sweep = tuple(
      theory.solver_axes(solver, preset, _LAPTOP)
      + theory.size_axes(config, *size)
      + effort
      + (('model.inner.random_start', (False, True)),)
      for solver, efforts in _efforts(preset).items()
      for size in sizes
      for effort in efforts
  )
  return config


def _efforts(preset: str) -> dict[str, list[tuple]]:
  """Returns solver -> the axes of each effort."""
  efforts: dict[str, list[tuple]] = {
      'levenberg_marquardt': [
          (('model.inner.num_steps', _ITERATIONS),),
      ],
      'adam': [
          (
              ('model.inner.num_steps', (num_steps,)),
              ('model.inner.learning_rate', (learning_rate,)),
          )
          for num_steps, learning_rate in _ADAM
      ],
  }
  if preset == 'smoke':
    efforts['levenberg_marquardt'] = [(('model.inner.num_steps', (2,)),)]
    efforts['adam'] = [(('model.inner.num_steps', (2,)),)]
  return efforts

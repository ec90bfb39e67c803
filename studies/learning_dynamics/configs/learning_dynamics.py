"""Ours: does training find the modules when the linear theory says?

Students of Figure 2C, with converged inference, on supports that differ in the
eigenvalues of E[z z'], in connectivity, or in both, and evaluated often: module
alignment, decoding of each module, and the loss of each family. At laptop
scale, one seed of one of the 18 runs takes about a minute of one core.

  python -m modular_hyperteacher.main --config=learning_dynamics
  python -m modular_hyperteacher.main --config=learning_dynamics:early
  python figures/make_all.py --only=ld_times,ld_order,ld_order_early,ld_collapse
"""

from collections.abc import Iterable

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.configs.blocks import theory
from modular_hyperteacher.configs.blocks import variants
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.studies.learning_dynamics import supports


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  blocks = theory.blocks(preset, num_seeds=5)
  blocks['task']['name'] = 'weighted_families'
  student = blocks['models']['levenberg_marquardt']
  blocks['models'] = {'tracked_student': student | {'name': 'tracked_student'}}
  blocks['training'] |= presets.choose(
      preset,
      smoke={},
      laptop={
          'num_outer_steps': 4000,
          'evaluate_every': 100,
          'num_evaluation_tasks': 96,
      },
      paper={'evaluate_every': 500},
  )
  # The first run of the paper's, and the last of ours.
  runs = supports.RUNS[:: len(supports.RUNS) - 1 if preset == 'smoke' else 1]
  return experiment.make('learning_dynamics', preset, _sweep(runs), **blocks)


def _sweep(runs: Iterable[tuple[str, str]]) -> list[sweeps.Grid]:
  return [
      dict(
          latent_type=[latent_type],
          task_support=[name],
          sampler=[supports.sampler(name)],
          model=['tracked_student'],
      )
      for latent_type, name in runs
  ]


def _early(preset: str) -> experiment.Config:
  """Evaluates every fourth of the first 200 steps, where modules differ.

  At laptop scale, nearly all modules can be decoded at the first evaluation,
  after 100 steps.
  """
  config = get_config(preset)
  if preset == 'laptop':
    config.training.update({'num_outer_steps': 200, 'evaluate_every': 4})
  runs = [run for run in supports.RUNS if supports.modules_differ(*run)]
  config.sweep = tuple(_sweep(runs[-1:] if preset == 'smoke' else runs))
  return config


VARIANTS = {'early': _early}
get_config = variants.add('learning_dynamics', get_config, VARIANTS)

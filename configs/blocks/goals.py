"""The blocks of compositional goals (Section 4.3, Appendix C.4).

'laptop' keeps all 200 goals, the models' kinds and their inner loops, and makes
do with mazes of 7 x 7 cells, narrower monolithic models, four times the
modules, an outer learning rate that decays, and fewer and smaller steps. In the
published mazes of 11 x 11, and with the published 8 modules, hypernetworks are
far from trained after as many minutes.
"""

from configs.blocks import experiment
from configs.blocks import gridworld
from configs.blocks import models
from configs.blocks import presets
from modular_hyperteacher.experiments import sweeps


def make(name: str, preset: str, sweep: sweeps.Grid) -> experiment.Config:
  """Returns a config of compositional goals."""
  return experiment.make(
      name,
      preset,
      sweep,
      task=task(preset),
      models=make_models(preset),
      training=gridworld.training(preset),
  )


def task(preset: str) -> experiment.Block:
  """Returns the task block of a preset."""
  return {
      'name': 'goals',
      # 'random' or 'non_compositional'.
      'task_support': 'random',
      # Share of the goals that 'random' holds out.
      'fraction_ood': 0.25,
      # Cells along a side of a maze; agents start at least as many moves away
      # from their target.
      'grid_size': 11 if preset == 'paper' else 7,
      # Moves of the longest demonstration that there is room for. Mazes with
      # longer shortest paths are drawn again.
      'max_path_length': 60 if preset == 'paper' else 24,
  }


def make_models(preset: str) -> dict[str, experiment.Block]:
  """Returns the four models of a preset (Table A12)."""
  published = {
      'anil': {
          'name': 'anil',
          'num_hidden': 2,
          'hidden_dim': 512,
          'inner': models.inner(100, 0.01),
          'outer': models.outer(1e-3, 2.0, weight_decay=1e-2, skips=0),
      },
      'maml': {
          'name': 'maml',
          'num_hidden': 2,
          'hidden_dim': 384,
          'inner': models.inner(10, 0.01),
          'outer': models.outer(1e-3, 1.0, weight_decay=1e-2, skips=0),
      },
      'linear_hypernetwork': models.hypernetwork(
          'linear_hypernetwork',
          num_hidden=2,
          hidden_dim=32,
          num_modules=8,
          inner=models.inner(10, 0.3),
          outer=models.outer(3e-3, 2.0, weight_decay=1e-2, skips=0),
      ),
      'nonlinear_hypernetwork': models.hypernetwork(
          'nonlinear_hypernetwork',
          num_hidden=2,
          hidden_dim=32,
          num_modules=8,
          inner=models.inner(10, 0.1),
          outer=models.outer(1e-3, 2.0, weight_decay=1e-2, skips=0),
          generator_num_hidden=4,
          generator_hidden_dim=32,
      ),
  }
  if preset == 'paper':
    return published
  return presets.merge(
      published,
      gridworld.small_models(
          num_modules=32, monolithic_rate=3e-3, modular_rate=3e-3
      ),
  )

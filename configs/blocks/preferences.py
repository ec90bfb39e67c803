"""The blocks of compositional preferences (Section 4.2, Appendix C.3).

'laptop' keeps the world, the tasks, the models' kinds and their inner loops
(but ANIL takes the whole support set at each of its steps, in place of 64
examples), and makes do with narrower students, higher outer learning rates that
decay, and fewer and smaller outer steps.
"""

from collections.abc import Iterable
from typing import Any

from ml_collections import config_dict

from configs.blocks import experiment
from configs.blocks import gridworld
from configs.blocks import models
from configs.blocks import presets
from modular_hyperteacher.experiments import sweeps


def make(
    name: str,
    preset: str,
    sweep: sweeps.Grid | Iterable[sweeps.Grid],
    *,
    num_seeds: int = 3,
    **task_fields: Any,
) -> experiment.Config:
  """Returns a config of compositional preferences.

  Args:
    name: of the experiment.
    preset: one of `presets.PRESETS`.
    sweep: one grid or several.
    num_seeds: at the published scale.
    **task_fields: of the task, in place of the published.
  """
  return experiment.make(
      name,
      preset,
      sweep,
      task=task() | task_fields,
      models=make_models(preset),
      training=gridworld.training(
          preset,
          num_outer_steps=100_000,
          seeds=tuple(range(2020, 2020 + num_seeds)),
      ),
  )


def task() -> experiment.Block:
  """Returns the task block, the same at all scales."""
  return {
      'name': 'preferences',
      # M, and K: how many of them a task mixes at most.
      'num_modules': 8,
      'max_active': 3,
      # 'random', 'non_compositional', 'connected' or 'disconnected'.
      'task_support': 'random',
      # Share of the combinations that 'random' holds out.
      'fraction_ood': 0.25,
      # 'released' as in the authors' code, or 'paper' as in its text.
      'sampler': 'released',
      # Instances per task, each of eight steps; in training and at evaluation.
      'num_support': 16,
      'num_query': 16,
      'num_query_evaluation': 1,
  }


def make_models(preset: str) -> dict[str, experiment.Block]:
  """Returns the four models of a preset (Table A11)."""
  published = {
      'anil': {
          'name': 'anil',
          'num_hidden': 4,
          'hidden_dim': 512,
          'inner': models.inner(100, 0.01, batch_size=64),
          'outer': models.outer(3e-4, clip_norm=2.0, weight_decay=1e-2),
      },
      'maml': {
          'name': 'maml',
          'num_hidden': 3,
          'hidden_dim': 368,
          'inner': models.inner(10, 0.01),
          'outer': models.outer(1e-3, clip_norm=2.0, weight_decay=1e-2),
      },
      'linear_hypernetwork': models.hypernetwork(
          'linear_hypernetwork',
          num_hidden=3,
          hidden_dim=64,
          num_modules=32,
          inner=models.inner(10, 0.1),
          outer=models.outer(3e-4, clip_norm=1.0, weight_decay=1e-2),
      ),
      'nonlinear_hypernetwork': models.hypernetwork(
          'nonlinear_hypernetwork',
          num_hidden=2,
          hidden_dim=64,
          num_modules=32,
          inner=models.inner(10, 0.1),
          outer=models.outer(3e-4, clip_norm=2.0, weight_decay=1e-2),
          generator_num_hidden=4,
          generator_hidden_dim=32,
      ),
  }
  if preset == 'paper':
    return published
  small = gridworld.small_models(
      num_modules=16, monolithic_rate=1e-3, modular_rate=3e-3
  )
  small['anil']['inner'] = {'batch_size': config_dict.placeholder(int)}
  return presets.merge(published, small)

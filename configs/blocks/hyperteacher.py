"""The hyperteacher's blocks (Section 4.1, Appendix C.2).

'laptop' keeps the number of modules, the models, their inner loops (but ANIL
takes the whole support set at each of its steps, in place of 64 examples) and
the criterion, and makes the problem one that the students learn well within
minutes: a teacher with one generated layer of width 8, combinations of up to
three modules in place of two layers of up to two, 32 + 32 examples, narrower
students, fewer and smaller outer steps.
"""

from collections.abc import Iterable
from typing import Any

from ml_collections import config_dict

from configs.blocks import experiment
from configs.blocks import models as shared
from configs.blocks import presets
from modular_hyperteacher.experiments import sweeps

_SMALL_TASK = {
    'max_active': 3,
    'input_dim': 8,
    'teacher_hidden_dim': 8,
    'teacher_num_hidden': 2,
    'num_support': 32,
    'num_query': 32,
}
# With one generated layer, K = 1 leaves no combination to hold out. Two layers
# of width 8 are not learned within minutes, so the teacher gets 4 inputs and
# outputs and 6 hidden units: of 4, some combinations leave none active.
_TWO_LAYERS = {
    'input_dim': 4,
    'output_dim': 4,
    'teacher_hidden_dim': 6,
    'teacher_num_hidden': 3,
}


def make(
    name: str,
    preset: str,
    sweep: sweeps.Grid | Iterable[sweeps.Grid],
    *,
    models: dict[str, Any] | None = None,
    two_layers: bool = False,
    num_outer_steps: int = 200_000,
    evaluate_every: int = 500,
    **task_fields: Any,
) -> experiment.Config:
  """Returns a config of the hyperteacher.

  Args:
    name: of the experiment.
    preset: one of `presets.PRESETS`.
    sweep: one grid or several.
    models: those to choose from; None for the paper's four.
    two_layers: whether a scaled-down teacher, too, generates two layers.
    num_outer_steps: at the published scale.
    evaluate_every: at laptop scale, outer steps between evaluations.
    **task_fields: of the task, in place of the preset's.
  """
  scale = presets.choose(
      preset,
      smoke=experiment.SMOKE,
      laptop={
          'num_outer_steps': 3000,
          'meta_batch_size': 32,
          'evaluate_every': evaluate_every,
          'num_evaluation_tasks': 256,
      },
      paper={'num_outer_steps': num_outer_steps},
  )
  return experiment.make(
      name,
      preset,
      sweep,
      task=task(preset, two_layers) | task_fields,
      models=models or make_models(preset, two_layers),
      training=experiment.training(**scale),
  )


def task(preset: str, two_layers: bool = False) -> experiment.Block:
  """Returns the task block of a preset."""
  small = _SMALL_TASK | (_TWO_LAYERS if two_layers else {})
  return {
      'name': 'hyperteacher',
      # M, and K: how many of them a layer of a task combines at most.
      'num_modules': 4,
      'max_active': 2,
      # 'random', 'non_compositional', 'connected' or 'disconnected'.
      'task_support': 'random',
      # Share of the combinations that 'random' holds out.
      'fraction_ood': 0.25,
      'input_dim': 16,
      'output_dim': 8,
      'teacher_hidden_dim': 32,
      # Hidden layers; all but the first are generated.
      'teacher_num_hidden': 3,
      # Examples per task.
      'num_support': 256,
      'num_query': 256,
      # Of the targets' softmax.
      'temperature': 0.1,
      # Inputs that outputs are standardised on, per task.
      'num_standardisation': 1000,
  } | ({} if preset == 'paper' else small)


def make_models(
    preset: str, two_layers: bool = False
) -> dict[str, experiment.Block]:
  """Returns the four models of a preset (Table A10)."""
  published = {
      'anil': {
          'name': 'anil',
          'num_hidden': 3,
          'hidden_dim': 512,
          'inner': shared.inner(100, 0.03, batch_size=64),
          'outer': shared.outer(1e-3, clip_norm=2.0, weight_decay=1e-4),
      },
      'maml': {
          'name': 'maml',
          'num_hidden': 3,
          'hidden_dim': 384,
          'inner': shared.inner(10, 0.01),
          'outer': shared.outer(1e-3, clip_norm=2.0, weight_decay=1e-4),
      },
      'linear_hypernetwork': shared.hypernetwork(
          'linear_hypernetwork',
          num_hidden=3,
          hidden_dim=128,
          inner=shared.inner(10, 0.3),
          outer=shared.outer(1e-3, clip_norm=1.0, weight_decay=1e-2),
      ),
      'nonlinear_hypernetwork': shared.hypernetwork(
          'nonlinear_hypernetwork',
          num_hidden=3,
          hidden_dim=128,
          inner=shared.inner(10, 0.3),
          outer=shared.outer(3e-3, clip_norm=1.0, weight_decay=1e-2),
          generator_num_hidden=4,
          generator_hidden_dim=32,
      ),
  }
  if preset == 'paper':
    return published
  monolithic = {'num_hidden': 3 if two_layers else 2, 'hidden_dim': 64}
  # Hypernetworks compute all tasks of a step at once, MAML and ANIL as many as
  # suit the platform. On a CPU these are two, by which their steps of three
  # seeds took a third less time, and a hypernetwork's up to half more.
  modular = monolithic | {'hidden_dim': 32, 'task_chunk_size': 32}
  # With two layers, at three times the published rate, most seeds got worse
  # after the first thousand steps.
  rate = 1e-3 if two_layers else 3e-3
  return presets.merge(
      published,
      {
          'anil': {
              **monolithic,
              'inner': {'batch_size': config_dict.placeholder(int)},
          },
          'maml': monolithic,
          'linear_hypernetwork': {**modular, 'outer': {'learning_rate': rate}},
          'nonlinear_hypernetwork': modular,
      },
  )

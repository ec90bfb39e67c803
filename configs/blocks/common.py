"""Blocks that configs share, at the published scale, and how presets scale.

A config says three things: the task, the models, the training; and a sweep
over their fields. `execution` holds what does not change results. Blocks here
carry the published values ("Tables" are those of the paper's Appendix C, with
the values selected in the authors' released configs); a figure's file writes
what differs, and a preset changes scale only.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import ml_collections
from ml_collections import config_dict

# An ml_collections.ConfigDict, whose nested fields have no static types.
Config: TypeAlias = Any

PRESETS = ('smoke', 'laptop', 'paper')
HYPERNETWORKS = ('linear_hypernetwork', 'nonlinear_hypernetwork')
MODELS = HYPERNETWORKS + ('anil', 'maml')


def experiment(
    name: str, preset: str, **blocks: ml_collections.ConfigDict
) -> Config:
  """Returns a config of these blocks, or raises for an unknown preset."""
  if preset not in PRESETS:
    raise ValueError(
        f"preset is '{preset}'; choose one of {', '.join(PRESETS)}."
    )
  config = ml_collections.ConfigDict()
  config.experiment = name
  config.preset = preset
  for block, fields in blocks.items():
    config[block] = fields
  config.execution = ml_collections.ConfigDict({
      # Outer steps between rows of training metrics.
      'log_every': 100,
      # Seconds between checkpoints.
      'checkpoint_every_s': 60.0,
      # Tasks computed at once on a device; bounds memory. None for what suits
      # the platform.
      'task_chunk_size': config_dict.placeholder(int),
      # Whether to optimise machine code, which takes longer to compile. A smoke
      # test's few steps are not worth it.
      'optimise': preset != 'smoke',
  })
  config.sweep = ()
  return config


def hyperteacher_task() -> ml_collections.ConfigDict:
  """The hyperteacher's defaults (Section 4.1, Appendix C.2)."""
  return ml_collections.ConfigDict({
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
  })


def hyperteacher_models() -> ml_collections.ConfigDict:
  """The four models on the hyperteacher (Table A10)."""
  return ml_collections.ConfigDict({
      'anil': _mlp_model(
          'anil',
          num_hidden=3,
          hidden_dim=512,
          inner=_inner(100, 0.03, batch_size=64),
          outer=_outer(1e-3, clip_norm=2.0, weight_decay=1e-4),
      ),
      'maml': _mlp_model(
          'maml',
          num_hidden=3,
          hidden_dim=384,
          inner=_inner(10, 0.01),
          outer=_outer(1e-3, clip_norm=2.0, weight_decay=1e-4),
      ),
      'linear_hypernetwork': _hypernetwork_model(
          'linear_hypernetwork',
          num_hidden=3,
          hidden_dim=128,
          inner=_inner(10, 0.3),
          outer=_outer(1e-3, clip_norm=1.0, weight_decay=1e-2),
      ),
      'nonlinear_hypernetwork': _hypernetwork_model(
          'nonlinear_hypernetwork',
          num_hidden=3,
          hidden_dim=128,
          inner=_inner(10, 0.3),
          outer=_outer(3e-3, clip_norm=1.0, weight_decay=1e-2),
          generator_num_hidden=4,
          generator_hidden_dim=32,
      ),
  })


def preferences_task() -> ml_collections.ConfigDict:
  """Compositional preferences' defaults (Section 4.2, Appendix C.3)."""
  return ml_collections.ConfigDict({
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
  })


def preferences_models() -> ml_collections.ConfigDict:
  """The four models on compositional preferences (Table A11)."""
  return ml_collections.ConfigDict({
      'anil': _mlp_model(
          'anil',
          num_hidden=4,
          hidden_dim=512,
          inner=_inner(100, 0.01, batch_size=64),
          outer=_outer(3e-4, clip_norm=2.0, weight_decay=1e-2),
      ),
      'maml': _mlp_model(
          'maml',
          num_hidden=3,
          hidden_dim=368,
          inner=_inner(10, 0.01),
          outer=_outer(1e-3, clip_norm=2.0, weight_decay=1e-2),
      ),
      'linear_hypernetwork': _hypernetwork_model(
          'linear_hypernetwork',
          num_hidden=3,
          hidden_dim=64,
          num_modules=32,
          inner=_inner(10, 0.1),
          outer=_outer(3e-4, clip_norm=1.0, weight_decay=1e-2),
      ),
      'nonlinear_hypernetwork': _hypernetwork_model(
          'nonlinear_hypernetwork',
          num_hidden=2,
          hidden_dim=64,
          num_modules=32,
          inner=_inner(10, 0.1),
          outer=_outer(3e-4, clip_norm=2.0, weight_decay=1e-2),
          generator_num_hidden=4,
          generator_hidden_dim=32,
      ),
  })


def goals_task() -> ml_collections.ConfigDict:
  """Compositional goals' defaults (Section 4.3, Appendix C.4)."""
  return ml_collections.ConfigDict({
      'name': 'goals',
      # 'random' or 'non_compositional'.
      'task_support': 'random',
      # Share of the goals that 'random' holds out.
      'fraction_ood': 0.25,
      # Cells along a side of a maze; agents start at least as many moves away
      # from their target.
      'grid_size': 11,
      # Moves of the longest demonstration that there is room for. Mazes with
      # longer shortest paths are drawn again.
      'max_path_length': 60,
  })


def goals_models() -> ml_collections.ConfigDict:
  """The four models on compositional goals (Table A12)."""
  return ml_collections.ConfigDict({
      'anil': _mlp_model(
          'anil',
          num_hidden=2,
          hidden_dim=512,
          inner=_inner(100, 0.01),
          outer=_outer(1e-3, clip_norm=2.0, weight_decay=1e-2, skips=0),
      ),
      'maml': _mlp_model(
          'maml',
          num_hidden=2,
          hidden_dim=384,
          inner=_inner(10, 0.01),
          outer=_outer(1e-3, clip_norm=1.0, weight_decay=1e-2, skips=0),
      ),
      'linear_hypernetwork': _hypernetwork_model(
          'linear_hypernetwork',
          num_hidden=2,
          hidden_dim=32,
          num_modules=8,
          inner=_inner(10, 0.3),
          outer=_outer(3e-3, clip_norm=2.0, weight_decay=1e-2, skips=0),
      ),
      'nonlinear_hypernetwork': _hypernetwork_model(
          'nonlinear_hypernetwork',
          num_hidden=2,
          hidden_dim=32,
          num_modules=8,
          inner=_inner(10, 0.1),
          outer=_outer(1e-3, clip_norm=2.0, weight_decay=1e-2, skips=0),
          generator_num_hidden=4,
          generator_hidden_dim=32,
      ),
  })


def training(
    num_outer_steps: int, num_seeds: int = 3
) -> ml_collections.ConfigDict:
  """Training at the published scale (Appendix C.2.2)."""
  return ml_collections.ConfigDict({
      'seeds': tuple(range(2020, 2020 + num_seeds)),
      'num_outer_steps': num_outer_steps,
      # Tasks per outer step.
      'meta_batch_size': 128,
      # Outer steps between evaluations; tasks per split at each.
      'evaluate_every': 1000,
      'num_evaluation_tasks': 1024,
      # JAX's random number generator.
      'prng_impl': 'threefry2x32',
      # Of float32 products on GPUs and TPUs: 'float32', or what is faster
      # there and less exact, 'tensorfloat32' or 'bfloat16'.
      'matmul_precision': 'float32',
  })


def _mlp_model(name: str, **fields: Any) -> ml_collections.ConfigDict:
  return ml_collections.ConfigDict({'name': name, **fields})


def _hypernetwork_model(
    name: str, num_modules: int | None = None, **fields: Any
) -> ml_collections.ConfigDict:
  return ml_collections.ConfigDict({
      'name': name,
      # M-hat, the student's modules: a number, or else a multiple of the
      # teacher's.
      'num_modules': config_dict.FieldReference(num_modules, field_type=int),
      'modules_per_teacher_module': 4,
      **fields,
  })


def _inner(
    num_steps: int, learning_rate: float, batch_size: int | None = None
) -> ml_collections.ConfigDict:
  return ml_collections.ConfigDict({
      'num_steps': num_steps,
      'learning_rate': learning_rate,
      'weight_decay': 1e-4,
      # float32 machine epsilon, under the root of AdamW's second moment.
      'eps_root': 1.1920929e-07,
      # Support examples per step, with replacement; None for all.
      'batch_size': config_dict.FieldReference(batch_size, field_type=int),
  })


def _outer(
    learning_rate: float, clip_norm: float, weight_decay: float, skips: int = 1
) -> ml_collections.ConfigDict:
  return ml_collections.ConfigDict({
      'learning_rate': learning_rate,
      'weight_decay': weight_decay,
      'clip_norm': clip_norm,
      # Non-finite gradients in a row that are skipped; 0 skips none.
      'max_consecutive_skips': skips,
  })


def scale_hyperteacher(config: Config) -> None:
  """Scales a hyperteacher config from the published to its preset's scale.

  'laptop' keeps the number of modules, the models, their inner loops (but ANIL
  takes the whole support set at each of its steps, in place of 64 examples) and
  the criterion, and makes the problem one that the students learn well within
  minutes: a teacher with one generated layer of width 8, combinations of up
  to three modules in place of two layers of up to two, 32 + 32 examples,
  narrower students, fewer and smaller outer steps. 'smoke' takes a few steps
  of that.
  """
  if config.preset == 'paper':
    return
  config.task.update({
      'max_active': min(config.task.num_modules, 3),
      'input_dim': 8,
      'teacher_hidden_dim': 8,
      'teacher_num_hidden': 2,
      'num_support': 32,
      'num_query': 32,
  })
  widths = {
      'anil': 64,
      'maml': 64,
      'linear_hypernetwork': 32,
      'nonlinear_hypernetwork': 32,
  }
  for name, width in widths.items():
    config.models[name].update({'num_hidden': 2, 'hidden_dim': width})
  config.models.anil.inner.batch_size = None
  config.models.linear_hypernetwork.outer.learning_rate = 3e-3
  config.training.update({
      'num_outer_steps': 3000,
      'meta_batch_size': 32,
      'evaluate_every': 500,
      'num_evaluation_tasks': 256,
  })
  config.execution.update({'log_every': 50, 'task_chunk_size': 32})
  _scale_to_smoke(config)


def model_grids(preset: str, models: Sequence[str], *axes: tuple) -> tuple:
  """Returns a hyperteacher sweep's grids of these axes and models.

  At laptop scale, hypernetworks compute all tasks of a step at once, as
  `scale_hyperteacher` says, and MAML and ANIL as many as suit the platform. On
  a CPU these are two, by which their steps of three seeds took a third less
  time, and a hypernetwork's up to half more.
  """
  if preset != 'laptop':
    return ((*axes, ('model', models)),)
  monolithic = tuple(name for name in models if name not in HYPERNETWORKS)
  modular = tuple(name for name in models if name in HYPERNETWORKS)
  as_suits = ('execution.task_chunk_size', (None,))
  grids: tuple = ()
  if modular:
    grids += ((*axes, ('model', modular)),)
  if monolithic:
    grids += ((*axes, ('model', monolithic), as_suits),)
  return grids


def scale_preferences(config: Config) -> None:
  """Scales a preferences config from the published to its preset's scale.

  'laptop' keeps the world, the tasks, the models' kinds and their inner loops
  (but ANIL takes the whole support set at each of its steps, in place of 64
  examples), and makes do with narrower students, higher outer learning rates
  that decay, and fewer and smaller outer steps. 'smoke' takes a few steps of
  that.
  """
  if config.preset == 'paper':
    return
  _scale_models(config, num_modules=16, learning_rate=1e-3)
  for name in HYPERNETWORKS:
    config.models[name].outer.learning_rate = 3e-3
  config.models.anil.inner.batch_size = None
  config.training.update({
      'seeds': config.training.seeds[:3],
      'num_outer_steps': 3000,
      'meta_batch_size': 16,
      'evaluate_every': 1000,
      'num_evaluation_tasks': 256,
  })
  config.execution.log_every = 50
  _scale_to_smoke(config)


def scale_goals(config: Config) -> None:
  """Scales a goals config from the published to its preset's scale.

  'laptop' keeps all 200 goals, the models' kinds and their inner loops, and
  makes do with mazes of 7 x 7 cells, narrower monolithic models, four times
  the modules, an outer learning rate that decays, and fewer and smaller steps.
  In the published mazes of 11 x 11, and with the published 8 modules,
  hypernetworks are far from trained after as many minutes. 'smoke' takes a few
  steps of that.
  """
  if config.preset == 'paper':
    return
  config.task.update({'grid_size': 7, 'max_path_length': 24})
  _scale_models(config, num_modules=32, learning_rate=3e-3)
  config.training.update({
      'num_outer_steps': 3000,
      'meta_batch_size': 16,
      'evaluate_every': 1000,
      'num_evaluation_tasks': 256,
  })
  config.execution.log_every = 50
  _scale_to_smoke(config)


def _scale_models(
    config: Config, num_modules: int, learning_rate: float
) -> None:
  """Two hidden layers for all models, and a learning rate that decays."""
  widths = {
      'anil': 128,
      'maml': 64,
      'linear_hypernetwork': 32,
      'nonlinear_hypernetwork': 32,
  }
  for name, width in widths.items():
    model = config.models[name]
    model.update({'num_hidden': 2, 'hidden_dim': width})
    model.outer.learning_rate = learning_rate
    # Half a cosine down to this share: with so few steps, it takes the place
    # of the long training at the published rate.
    model.outer.final_fraction = 0.01
    if 'num_modules' in model:
      model.num_modules = num_modules


def _scale_to_smoke(config: Config) -> None:
  """A few steps, if that is the preset."""
  if config.preset == 'smoke':
    config.training.update({
        'seeds': (2020,),
        'num_outer_steps': 4,
        'meta_batch_size': 8,
        'evaluate_every': 4,
        'num_evaluation_tasks': 8,
    })
    config.execution.log_every = 2


def generate_two_layers(config: Config) -> None:
  """Gives a scaled-down teacher two generated layers, as the published has.

  With one, K = 1 leaves no combination to hold out. Two layers of width 8 are
  not learned within minutes, so the teacher gets 4 inputs and outputs and 6
  hidden units (of 4, some combinations leave none active); students get a third
  hidden layer. With that, the linear hypernetwork gets the published outer
  learning rate: at three times as much, most seeds got worse after the first
  thousand steps.

  Args:
    config: as `scale_hyperteacher` left it.
  """
  config.task.update({
      'input_dim': 4,
      'output_dim': 4,
      'teacher_hidden_dim': 6,
      'teacher_num_hidden': 3,
  })
  for model in MODELS:
    config.models[model].num_hidden = 3
  config.models.linear_hypernetwork.outer.learning_rate = 1e-3

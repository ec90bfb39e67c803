"""Builds the task, model and learner of a bilevel run from its config.

A new task or model needs a file and a line in a table here, or a function in
another package; docs/extending.md shows one of each.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import logging
import math
import types
from typing import Any, NamedTuple

import jax

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.analysis import acting
from modular_hyperteacher.analysis import alignment
from modular_hyperteacher.analysis import base as analyses
from modular_hyperteacher.analysis import decoding
from modular_hyperteacher.analysis import refitting
from modular_hyperteacher.experiments import components
from modular_hyperteacher.experiments import settings
from modular_hyperteacher.learning import evaluation
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.models import anil
from modular_hyperteacher.models import base as models
from modular_hyperteacher.models import linear_hypernetwork
from modular_hyperteacher.models import maml
from modular_hyperteacher.models import modular_student
from modular_hyperteacher.models import nonlinear_hypernetwork
from modular_hyperteacher.studies.amortised import amortised
from modular_hyperteacher.studies.given_tasks import graded_hyperteacher
from modular_hyperteacher.studies.given_tasks import layers
from modular_hyperteacher.studies.given_tasks import multitask_mlp
from modular_hyperteacher.studies.given_tasks import multitask_transformer
from modular_hyperteacher.studies.in_context import fuzzy_logic
from modular_hyperteacher.studies.in_context import modular_regression
from modular_hyperteacher.studies.in_context import sraven
from modular_hyperteacher.studies.sparse_maml import sparse_maml
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import hyperteacher
from modular_hyperteacher.tasks import teacher_student
from modular_hyperteacher.tasks.gridworlds import goals
from modular_hyperteacher.tasks.gridworlds import preferences


def _decode(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> analyses.Analysis:
  """Decodes latents from what a model has: fast parameters, or layers."""
  if model.activations is None:
    return decoding.make_analysis(task, model)
  return layers.make_analysis(task, model.activations)


class TaskEntry(NamedTuple):
  """A task distribution, its analyses, and its chunk sizes on a CPU.

  Attributes:
    make: `make(**fields of the config's task block) -> TaskDistribution`.
    make_analyses: `make(task, model) -> Analysis` of adapted parameters.
    cpu_chunk_size: the fastest number of tasks to compute together on a CPU,
      whose caches they share.
    cpu_chunk_sizes: exceptions, by model.
  """

  make: Callable[..., tasks.TaskDistribution]
  make_analyses: tuple[
      Callable[[tasks.TaskDistribution, models.MetaModel], analyses.Analysis],
      ...,
  ] = (_decode,)
  cpu_chunk_size: int = 2
  cpu_chunk_sizes: Mapping[str, int] = types.MappingProxyType({})


TASKS = {
    'hyperteacher': TaskEntry(
        hyperteacher.make, cpu_chunk_sizes={'multitask_mlp': 128}
    ),
    'graded_hyperteacher': TaskEntry(
        graded_hyperteacher.make, cpu_chunk_size=128
    ),
    'teacher_student': TaskEntry(
        teacher_student.make,
        (alignment.make_analysis, refitting.make_analysis),
        cpu_chunk_size=8,
    ),
    'modular_regression': TaskEntry(modular_regression.make),
    'fuzzy_logic': TaskEntry(fuzzy_logic.make),
    'sraven': TaskEntry(sraven.make),
    'preferences': TaskEntry(
        preferences.make,
        (_decode, acting.make_preferences_analysis),
        cpu_chunk_size=16,
        cpu_chunk_sizes={'anil': 4},
    ),
    'goals': TaskEntry(
        goals.make,
        (_decode, acting.make_goals_analysis),
        cpu_chunk_size=8,
        cpu_chunk_sizes={'anil': 4},
    ),
}
MODELS = {
    'maml': maml.make,
    'anil': anil.make,
    'sparse_maml': sparse_maml.make,
    'linear_hypernetwork': linear_hypernetwork.make,
    'nonlinear_hypernetwork': nonlinear_hypernetwork.make,
    'amortised_linear_hypernetwork': amortised.make_linear,
    'amortised_nonlinear_hypernetwork': amortised.make_nonlinear,
    'modular_student': modular_student.make,
    'multitask_mlp': multitask_mlp.make,
    'multitask_transformer': multitask_transformer.make,
}
# Tasks computed together on accelerators, where a step is thousands of small
# kernels whose time hardly depends on the number of tasks. The second number
# bounds memory: adapted parameters of a chunk, all seeds. MAML needs 3-4 GiB.
_CHUNK_SIZE = 128
_MAX_CHUNK_PARAMS = 2**24
# Cap on adapted parameters per chunk on a CPU; a single task may exceed it.
_MAX_CPU_CHUNK_PARAMS = 2**20
# Analyses are skipped if the adapted parameters of evaluation tasks, which stay
# on the devices, exceed this. Of the paper's runs only MAML's do: 7 to 21 GiB,
# and the host needs twice as much to concatenate them.
_MAX_KEPT_BYTES = 2 * 2**30
# (id of a function, its fields) -> the function, so that nothing else gets its
# id, and the model. Runs of a sweep share models: tracing them to count their
# parameters takes nearly all of the time of building a run.
_made: dict[tuple[int, str], tuple[Any, models.MetaModel]] = {}


@dataclasses.dataclass(frozen=True)
class BilevelExperiment(settings.Experiment):
  """An experiment of the bilevel system."""

  task: tasks.TaskDistribution
  model: models.MetaModel
  learner: outer_loop.Learner
  analysis: analyses.Analysis | None


def blocks(
    task: Mapping[str, Any], model: Mapping[str, Any]
) -> dict[str, Callable[..., Any]]:
  """Returns block -> the function or class that takes its fields."""
  return {
      'task': task_entry(dict(task)).make,
      'model': components.choose(MODELS, 'model', dict(model)),
      'model.inner': inner_loop.InnerConfig,
      'model.outer': outer_loop.OuterConfig,
  }


def build(
    config: Mapping[str, Any],
    training: settings.TrainingConfig,
    execution: settings.ExecutionConfig,
    num_devices: int,
) -> BilevelExperiment:
  """Returns the experiment of a config; see `build.build`."""
  task_block = dict(config['task'])
  entry = task_entry(task_block)
  task = components.call(entry.make, 'task', task_block, tasks.TaskDistribution)
  # This system draws the examples of all splits alike.
  splits = [
      s for s in task.evaluation_splits if s not in fuzzy_logic.FIXED_CONTEXT
  ]
  task = dataclasses.replace(task, evaluation_splits=tuple(splits))
  inner = components.call(
      inner_loop.InnerConfig,
      'model.inner',
      components.block(config['model'], 'inner'),
  )
  inner_loop.check(inner, task.objective)
  outer = components.call_outer(
      outer_loop.OuterConfig, config['model'], training
  )
  model = _make_model(config['model'], task)
  _check_start(inner, model)
  _check_fit(config['model'], model, task)
  if execution.task_chunk_size is None:
    share = training.meta_batch_size // num_devices
    best = _best_chunk_size(
        entry, config['model']['name'], model, len(training.seeds)
    )
    execution = dataclasses.replace(
        execution, task_chunk_size=math.gcd(share, best)
    )
  outer = dataclasses.replace(outer, task_chunk_size=execution.task_chunk_size)
  learner = outer_loop.make_learner(task, task.objective, model, inner, outer)
  made = [make(task, model) for make in entry.make_analyses]
  analysis = analyses.combine(
      [a for a in made if {*task.evaluation_splits}.issuperset(a.splits)]
  )
  if analysis:
    _, num_fast = models.count_params(model)
    num_tasks = len(analysis.splits) * training.num_evaluation_tasks
    if 4 * num_fast * num_tasks * len(training.seeds) > _MAX_KEPT_BYTES:
      logging.warning(
          '%s: adapted parameters of %d tasks, %d splits and %d seeds exceed'
          ' %d GiB and are not kept; results of analyses will be missing',
          config['model']['name'],
          training.num_evaluation_tasks,
          len(analysis.splits),
          len(training.seeds),
          _MAX_KEPT_BYTES // 2**30,
      )
      analysis = None
  system = make_system(
      task,
      model,
      learner,
      num_evaluation_tasks=training.num_evaluation_tasks,
      task_chunk_size=execution.task_chunk_size,
      analysis=analysis,
  )
  return BilevelExperiment(
      system, training, execution, task, model, learner, analysis
  )


def make_system(
    task: tasks.TaskDistribution,
    model: models.MetaModel,
    learner: outer_loop.Learner,
    *,
    num_evaluation_tasks: int,
    task_chunk_size: int | None,
    analysis: analyses.Analysis | None = None,
) -> programs.System:
  """Returns the system of one model on one task distribution.

  Args:
    task: the task distribution.
    model: the model to train.
    learner: the learning algorithm.
    num_evaluation_tasks: per split.
    task_chunk_size: tasks computed together on a device; None for all.
    analysis: analysis of adapted parameters.
  """

  def make_analyse(
      seed_tasks: Sequence[programs.SeedTasks], roots: Sequence[jax.Array]
  ) -> programs.Analyse | None:
    if analysis is None:
      return None
    return analyses.over_seeds(
        analysis, task.evaluation_splits, seed_tasks, roots
    )

  return programs.System(
      evaluation_splits=task.evaluation_splits,
      num_params=models.count_params(model),
      draw_tasks=evaluation.make_draw_tasks(task, num_evaluation_tasks),
      num_combinations=task.num_combinations,
      fixed_counts=task.fixed_counts,
      init=learner.init,
      step=learner.step,
      evaluate=evaluation.make_evaluate(
          task, learner, task_chunk_size, analysis.splits if analysis else ()
      ),
      make_analyse=make_analyse,
  )


def task_entry(task_block: dict[str, Any]) -> TaskEntry:
  """Returns the entry of a task block, whose field `name` it removes."""
  entry = components.choose(TASKS, 'task', task_block)
  return entry if isinstance(entry, TaskEntry) else TaskEntry(entry)


def _make_model(
    model_block: Mapping[str, Any], task: tasks.TaskDistribution
) -> models.MetaModel:
  """Returns the model of a block.

  If `num_modules` is None, it is `modules_per_teacher_module` times the task's.
  """
  fields = {
      field: value
      for field, value in model_block.items()
      if field not in ('inner', 'outer')
  }
  make = components.choose(MODELS, 'model', fields)
  if 'modules_per_teacher_module' in fields:
    factor = fields.pop('modules_per_teacher_module')
    untrusted.check(factor, int, 'model.modules_per_teacher_module')
    models.check_positive(modules_per_teacher_module=factor)
    if fields.get('num_modules') is None:
      fields['num_modules'] = factor * task.num_modules
  fields |= {'input_dim': task.input_dim, 'output_dim': task.output_dim}
  key = id(make), repr(sorted(fields.items()))
  if known := _made.get(key):
    return known[1]
  model = components.call(make, 'model', fields, models.MetaModel)
  model = model if model.reads_compact else models.densify(model)
  if len(_made) >= models.MAX_COUNTED:
    _made.pop(next(iter(_made), key), None)
  _made[key] = make, model  # Another thread may have built the same by now.
  return model


def _best_chunk_size(
    entry: TaskEntry, model_name: str, model: models.MetaModel, num_seeds: int
) -> int:
  """Returns the best number of tasks per chunk, a power of two."""
  _, num_fast = models.count_params(model)
  if jax.default_backend() == 'cpu':
    best = entry.cpu_chunk_sizes.get(model_name, entry.cpu_chunk_size)
    most = _MAX_CPU_CHUNK_PARAMS // max(num_fast, 1)
  else:
    best = _CHUNK_SIZE
    most = _MAX_CHUNK_PARAMS // max(num_fast * num_seeds, 1)
  return min(best, 2 ** (max(most, 1).bit_length() - 1))


def _check_start(
    inner: inner_loop.InnerConfig, model: models.MetaModel
) -> None:
  """Checks fields whose valid values depend on `model.infer`."""
  least = 1 if model.infer is None else 0
  rule = f'it must be at least {least}'
  number = inner.num_steps
  errors.require(number >= least, 'model.inner.num_steps', number, rule)
  if model.infer is None:
    num_meta, num_fast = models.count_params(model)
    if num_meta == num_fast:  # It learns the start and nothing else.
      rule = 'for a model that learns only where adaptation starts, it must be '
      value = inner.random_start
      errors.require(
          not value, 'model.inner.random_start', value, f'{rule}False'
      )
      value = inner.second_order
      errors.require(
          value or inner.first_order,
          'model.inner.second_order',
          value,
          f'{rule}True, or first_order must be',
      )
    return
  for field, needed in (('second_order', True), ('random_start', False)):
    value = getattr(inner, field)
    rule = f'for a model that predicts its fast parameters it must be {needed}'
    errors.require(value == needed, f'model.inner.{field}', value, rule)


def _check_fit(
    block: Mapping[str, Any],
    model: models.MetaModel,
    task: tasks.TaskDistribution,
) -> None:
  """Checks that a model can read what the task shows."""
  errors.require(
      task.sequence_lengths is None,
      'model.name',
      repr(block['name']),
      "it must be 'transformer', as the task shows sequences",
  )
  _, num_fast = models.count_params(model)
  errors.require(
      num_fast > 0 or task.code_dim > 0,
      'model.name',
      repr(block['name']),
      'it adapts nothing, so it must be given its tasks: choose a'
      ' task.encoding',
  )
  if 'example_dim' in block:
    errors.require(
        block['example_dim'] == task.input_dim - task.code_dim,
        'model.example_dim',
        block['example_dim'],
        f"it must be {task.input_dim - task.code_dim}, the size of the task's"
        ' inputs without the code',
    )

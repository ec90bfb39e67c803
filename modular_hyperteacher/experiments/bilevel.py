"""Builds the task, model and learner of a bilevel run from its config.

A new task or model needs a file and a line in a table of `components`, or a
function in another package; docs/extending.md shows one of each.
"""

from collections.abc import Callable, Mapping
import dataclasses
import json
import logging
import math
from typing import Any

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.analysis import base as analyses
from modular_hyperteacher.experiments import checked
from modular_hyperteacher.experiments import chunks
from modular_hyperteacher.experiments import components
from modular_hyperteacher.experiments import contracts
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import settings
from modular_hyperteacher.learning import estimates
from modular_hyperteacher.learning import evaluation
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.untrusted import rules

SIZES = 'input_dim', 'output_dim'  # Arguments of a model that its task sets.
# Analyses are skipped if the adapted parameters of evaluation tasks, which stay
# on the devices, exceed this. In the paper, only MAML's do: 7 to 21 GiB. To
# concatenate them, the host needs twice as much.
_MAX_KEPT_BYTES = 2 * 2**30
# The fields of a model, as JSON -> the function that made it, and the model.
_made: dict[str, tuple[Any, models.MetaModel]] = {}


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
      'task': components.task_entry(dict(task)).make,
      'model': components.choose(
          components.known_models(), 'model', dict(model)
      ),
      'model.inner': inner_loop.InnerConfig,
      'model.outer': _outer_config(model.get('outer', {})),
  }


def _outer_config(outer: Mapping[str, Any]) -> type[outer_loop.OuterConfig]:
  """Returns the class of the outer loop's settings, by its `gradient`."""
  known: dict[str, Any] = {estimates.UNROLLED: outer_loop.OuterConfig}
  for study in plugins.studies():
    known |= study.gradients
  name = outer.get('gradient', estimates.UNROLLED)
  untrusted.check(name, str, 'model.outer.gradient')
  errors.require_choice('model.outer.gradient', name, known)
  entry = known[name]
  return plugins.resolve(entry) if isinstance(entry, str) else entry


def build(
    config: Mapping[str, Any],
    training: settings.TrainingConfig,
    execution: settings.ExecutionConfig,
    num_devices: int,
) -> BilevelExperiment:
  """Returns the experiment of a config; see `build.build`."""
  task_block = dict(config['task'])
  entry = components.task_entry(task_block)
  name = config['task']['name']
  task = contracts.make_task(entry.make, name, task_block)
  # This system draws the examples of all splits alike.
  splits = [s for s in task.evaluation_splits if s not in task.context_splits]
  task = dataclasses.replace(task, evaluation_splits=tuple(splits))
  inner = checked.call(
      inner_loop.InnerConfig,
      'model.inner',
      checked.block(config['model'], 'inner'),
  )
  outer_class = _outer_config(checked.block(config['model'], 'outer'))
  outer = checked.call_outer(outer_class, config['model'], training)
  model = _make_model(config['model'], task)
  inner_loop.check(inner, task.objective, model)
  _check_start(inner, model)
  _check_fit(config['model'], model, task)
  if execution.task_chunk_size is None:
    share = training.meta_batch_size // num_devices
    best = chunks.best(
        entry, config['model']['name'], model, len(training.seeds)
    )
    execution = dataclasses.replace(
        execution, task_chunk_size=math.gcd(share, best)
    )
  outer = dataclasses.replace(outer, task_chunk_size=execution.task_chunk_size)
  learner = outer_loop.make_learner(task, model, inner, outer)
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

  Each split has `num_evaluation_tasks`. A device computes `task_chunk_size`
  tasks together; all of them for None.
  """
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
      analyse=analysis and analyses.of_seed(analysis, task.evaluation_splits),
      analysed_always=bool(analysis and analysis.always),
  )


def _make_model(
    model_block: Mapping[str, Any], task: tasks.TaskDistribution
) -> models.MetaModel:
  """Returns the model of a block.

  If `num_modules` is None, it is `modules_per_teacher_module` times the task's.
  """
  fields = {k: x for k, x in model_block.items() if k not in ('inner', 'outer')}
  if 'modules_per_teacher_module' in fields:
    factor = fields.pop('modules_per_teacher_module')
    untrusted.check(factor, rules.Count, 'model.modules_per_teacher_module')
    if fields.get('num_modules') is None:
      fields['num_modules'] = factor * task.num_modules
  for name in SIZES:
    rule = 'leave it out, as the task sets it'
    errors.require(name not in fields, f'model.{name}', fields.get(name), rule)
  fields |= {'input_dim': task.input_dim, 'output_dim': task.output_dim}
  # Runs of a sweep share models: tracing them to count their parameters takes
  # nearly all of the time of building a run. A function that was changed and
  # loaded again is another one.
  text = json.dumps(fields, sort_keys=True)
  make = components.choose(components.known_models(), 'model', fields)
  checked.require_parameters(make, 'model', SIZES)
  if text not in _made or _made[text][0] is not make:
    model = checked.call(make, 'model', fields, models.MetaModel)
    model = contracts.of_model(model_block['name'], model, task.output_dim)
    if len(_made) >= models.MAX_COUNTED:
      del _made[next(iter(_made))]  # The oldest.
    _made[text] = make, model if model.reads_compact else models.densify(model)
  return _made[text][1]


def _check_start(
    inner: inner_loop.InnerConfig, model: models.MetaModel
) -> None:
  """Checks fields whose valid values depend on `model.infer`."""
  predicts = model.infer is not None
  least = 0 if predicts else 1
  rule = f'it must be at least {least}'
  inner.require(inner.num_steps >= least, 'num_steps', rule)
  if predicts:
    rule = 'for a model that predicts its fast parameters it must be '
    inner.require(inner.second_order, 'second_order', f'{rule}True')
    inner.require(not inner.random_start, 'random_start', f'{rule}False')
    return
  num_meta, num_fast = models.count_params(model)
  if num_meta == num_fast:  # It learns the start and nothing else.
    rule = 'for a model that learns only where adaptation starts, it must be '
    inner.require(not inner.random_start, 'random_start', f'{rule}False')
    allowed = inner.second_order or inner.first_order
    rule += 'True, or first_order must be'
    inner.require(allowed, 'second_order', rule)


def _check_fit(
    block: Mapping[str, Any],
    model: models.MetaModel,
    task: tasks.TaskDistribution,
) -> None:
  """Checks that a model can read what the task shows."""
  name = repr(block['name'])
  rule = "it must be 'transformer', as the task shows sequences"
  errors.require(task.sequence_lengths is None, 'model.name', name, rule)
  _, num_fast = models.count_params(model)
  rule = 'it adapts nothing, so it must be given its tasks: choose a'
  rule += ' task.encoding'
  errors.require(num_fast or task.code_dim, 'model.name', name, rule)
  if 'example_dim' in block:
    size = task.input_dim - task.code_dim
    errors.require(
        block['example_dim'] == size,
        'model.example_dim',
        block['example_dim'],
        f"it must be {size}, the size of the task's inputs without the code",
    )

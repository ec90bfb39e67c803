"""From a run's config to a task, a model, and how they learn by two loops.

A new task or model is a new file and one line in a table here.
"""

import dataclasses
import logging
import math
import types
from typing import Any, Callable, Mapping, NamedTuple

import jax

from modular_hyperteacher import errors
from modular_hyperteacher import experiment_base as base
from modular_hyperteacher.analysis import acting
from modular_hyperteacher.analysis import alignment
from modular_hyperteacher.analysis import base as analyses
from modular_hyperteacher.analysis import decoding
from modular_hyperteacher.analysis import refitting
from modular_hyperteacher.learning import bilevel
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import losses
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import amortised
from modular_hyperteacher.models import anil
from modular_hyperteacher.models import base as models
from modular_hyperteacher.models import linear_hypernetwork
from modular_hyperteacher.models import maml
from modular_hyperteacher.models import modular_student
from modular_hyperteacher.models import nonlinear_hypernetwork
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import goals
from modular_hyperteacher.tasks import hyperteacher
from modular_hyperteacher.tasks import preferences
from modular_hyperteacher.tasks import teacher_student


class TaskEntry(NamedTuple):
  """A world, what is minimised in it, and what is measured at the end."""

  make: Callable[..., tasks.TaskDistribution]
  objective: losses.Objective
  make_analyses: tuple[
      Callable[
          [tasks.TaskDistribution, models.MetaModel], analyses.Analysis
      ],
      ...,
  ] = ()
  # Tasks that are best computed at once on a CPU, whose caches they share.
  cpu_chunk_size: int = 2
  # Models for which it is another number.
  cpu_chunk_sizes: Mapping[str, int] = types.MappingProxyType({})


TASKS = {
    'hyperteacher': TaskEntry(
        hyperteacher.make, losses.SOFT_LABELS, (decoding.make_analysis,)
    ),
    'teacher_student': TaskEntry(
        teacher_student.make,
        losses.REGRESSION,
        (alignment.make_analysis, refitting.make_analysis),
        cpu_chunk_size=8,
    ),
    'preferences': TaskEntry(
        preferences.make,
        losses.ACTION_VALUES,
        (decoding.make_analysis, acting.make_preferences_analysis),
        cpu_chunk_size=16,
        cpu_chunk_sizes={'anil': 4},
    ),
    'goals': TaskEntry(
        goals.make,
        losses.ACTIONS,
        (decoding.make_analysis, acting.make_goals_analysis),
        cpu_chunk_size=8,
        cpu_chunk_sizes={'anil': 4},
    ),
}
MODELS = {
    'maml': maml.make,
    'anil': anil.make,
    'linear_hypernetwork': linear_hypernetwork.make,
    'nonlinear_hypernetwork': nonlinear_hypernetwork.make,
    'amortised_linear_hypernetwork': amortised.make_linear,
    'amortised_nonlinear_hypernetwork': amortised.make_nonlinear,
    'modular_student': modular_student.make,
}
# Tasks computed at once on accelerators, where a step is thousands of small
# kernels that take little longer for more of them; and, as memory is bounded,
# the adapted parameters of these tasks in all seeds. MAML needs 3 to 4 GiB.
_CHUNK_SIZE = 128
_MAX_CHUNK_PARAMS = 2**24
# On a CPU, a chunk's adapted parameters shall not exceed this, if they can.
_MAX_CPU_CHUNK_PARAMS = 2**20
# Adapted parameters of evaluation tasks stay on the devices; beyond this, no
# analysis is made. Of the paper's runs, MAML's exceed it: 7 to 22 GiB, which
# the host needs twice to put together what devices hold.
_MAX_KEPT_BYTES = 2 * 2**30


@dataclasses.dataclass(frozen=True)
class BilevelExperiment(base.Experiment):
  """A run of the bilevel system, and what it is made of."""

  task: tasks.TaskDistribution
  model: models.MetaModel
  learner: outer_loop.Learner
  analysis: analyses.Analysis | None


def build(
    config: dict[str, Any],
    training: base.TrainingConfig,
    execution: base.ExecutionConfig,
    num_devices: int,
) -> BilevelExperiment:
  """Returns the experiment that a config describes, as `experiment.build`."""
  task_block = dict(config['task'])
  entry = base.choose(TASKS, 'task', task_block)
  task = base.call(entry.make, 'task', task_block)

  model_block = dict(config['model'])
  inner = base.call(
      inner_loop.InnerConfig, 'model.inner', model_block.pop('inner')
  )
  outer_block = model_block.pop('outer') | {
      'meta_batch_size': training.meta_batch_size,
      'num_outer_steps': training.num_outer_steps,
  }
  outer = base.call(outer_loop.OuterConfig, 'model.outer', outer_block)
  _check_inner(inner, entry.objective)
  _check_outer(outer)
  make_model = base.choose(MODELS, 'model', model_block)
  if 'num_modules' in model_block:
    factor = model_block.pop('modules_per_teacher_module')
    if factor <= 0:
      raise errors.UserError(
          f'model.modules_per_teacher_module is {factor}; it must be positive.'
      )
    if model_block['num_modules'] is None:
      model_block['num_modules'] = factor * task.num_modules
  for field, value in model_block.items():
    if value <= 0:
      raise errors.UserError(f'model.{field} is {value}; it must be positive.')
  model = base.call(
      make_model,
      'model',
      model_block
      | {'input_dim': task.input_dim, 'output_dim': task.output_dim},
  )
  _check_start(inner, model)
  if execution.task_chunk_size is None:
    share = training.meta_batch_size // num_devices
    suitable = _suitable_chunk_size(
        entry, config['model']['name'], model, len(training.seeds)
    )
    chunk_size = math.gcd(share, suitable)
    execution = dataclasses.replace(execution, task_chunk_size=chunk_size)
  outer = dataclasses.replace(
      outer, task_chunk_size=execution.task_chunk_size
  )
  learner = outer_loop.make_learner(
      task, entry.objective, model, inner, outer
  )
  analysis = analyses.combine(
      [make(task, model) for make in entry.make_analyses]
  )
  if analysis and _kept_bytes(model, analysis, training) > _MAX_KEPT_BYTES:
    logging.warning(
        '%s: adapted parameters of %d tasks, %d splits and %d seeds exceed'
        ' %d GiB and are not kept; what an analysis measures will be missing',
        config['model']['name'],
        training.num_evaluation_tasks,
        len(analysis.splits),
        len(training.seeds),
        _MAX_KEPT_BYTES // 2**30,
    )
    analysis = None
  system = bilevel.make_system(
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


def _suitable_chunk_size(entry, model_name, model, num_seeds):
  """Returns how many tasks are best computed at once, a power of two."""
  _, num_fast = models.count_params(model)
  if jax.default_backend() == 'cpu':
    best = entry.cpu_chunk_sizes.get(model_name, entry.cpu_chunk_size)
    most = _MAX_CPU_CHUNK_PARAMS // max(num_fast, 1)
  else:
    best = _CHUNK_SIZE
    most = _MAX_CHUNK_PARAMS // max(num_fast * num_seeds, 1)
  return min(best, 2 ** (max(most, 1).bit_length() - 1))


def _kept_bytes(model, analysis, training):
  """Returns what analyses need: adapted parameters, float32, of all seeds."""
  _, num_fast = models.count_params(model)
  num_tasks = len(analysis.splits) * training.num_evaluation_tasks
  return 4 * num_fast * num_tasks * len(training.seeds)


def _check_start(inner, model):
  """Checks what depends on where the inner loop starts."""
  least = 1 if model.infer is None else 0
  if inner.num_steps < least:
    raise errors.UserError(
        f'model.inner.num_steps is {inner.num_steps}; it must be at least'
        f' {least}.'
    )
  for field, needed in (('second_order', True), ('random_start', False)):
    if model.infer is not None and getattr(inner, field) != needed:
      raise errors.UserError(
          f'model.inner.{field} is {getattr(inner, field)}; for a model that'
          f' predicts its fast parameters it must be {needed}.'
      )


def _check_inner(inner, objective):
  if inner.batch_size is not None and inner.batch_size < 1:
    raise errors.UserError(
        f'model.inner.batch_size is {inner.batch_size}; it must be at least 1,'
        ' or None for the whole support set.'
    )
  if inner.solver not in inner_loop.SOLVERS:
    raise errors.UserError(
        f"model.inner.solver is '{inner.solver}'; choose one of"
        f' {", ".join(inner_loop.SOLVERS)}.'
    )
  if inner.solver == 'levenberg_marquardt':
    _check_least_squares(inner, objective)
    return
  if not 0 < inner.learning_rate < math.inf:
    raise errors.UserError(
        f'model.inner.learning_rate is {inner.learning_rate}; it must be'
        ' positive.'
    )
  for field in ('weight_decay', 'eps_root'):
    if not 0 <= getattr(inner, field) < math.inf:
      raise errors.UserError(
          f'model.inner.{field} is {getattr(inner, field)}; it must be at'
          ' least 0.'
      )
  if not inner.eps_root > 0 and inner.second_order:
    raise errors.UserError(
        f'model.inner.eps_root is {inner.eps_root}; it must be positive, or'
        ' outer gradients are NaN.'
    )


def _check_least_squares(inner, objective):
  if objective.residuals is None:
    raise errors.UserError(
        "model.inner.solver is 'levenberg_marquardt'; the loss of this task is"
        " not a sum of squares, which leaves 'adamw'."
    )
  for field, allowed in (
      ('second_order', False),
      ('fresh_support', False),
      ('batch_size', None),
  ):
    if getattr(inner, field) != allowed:
      raise errors.UserError(
          f'model.inner.{field} is {getattr(inner, field)}; with'
          f' model.inner.solver levenberg_marquardt it must be {allowed}.'
      )


def _check_outer(outer):
  if not 0 < outer.learning_rate < math.inf:
    raise errors.UserError(
        f'model.outer.learning_rate is {outer.learning_rate}; it must be'
        ' positive.'
    )
  if outer.clip_norm is not None and not outer.clip_norm > 0:
    raise errors.UserError(
        f'model.outer.clip_norm is {outer.clip_norm}; it must be positive, or'
        ' None for no clipping.'
    )
  for field in ('weight_decay', 'max_consecutive_skips'):
    if not 0 <= getattr(outer, field) < math.inf:
      raise errors.UserError(
          f'model.outer.{field} is {getattr(outer, field)}; it must be at'
          ' least 0.'
      )
  if not 0 <= outer.final_fraction <= 1:
    raise errors.UserError(
        f'model.outer.final_fraction is {outer.final_fraction}; it must lie'
        ' between 0 and 1.'
    )

"""From a run's config to a transformer that learns tasks in context.

A run belongs to this system if its model is in the table below; its task is one
of the bilevel system's. A new model is a new file and one line here.
"""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

import jax

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.experiments import checked
from modular_hyperteacher.experiments import components
from modular_hyperteacher.experiments import contracts
from modular_hyperteacher.experiments import settings
from modular_hyperteacher.studies.in_context import learner
from modular_hyperteacher.studies.in_context import models
from modular_hyperteacher.studies.in_context import modular_regression
from modular_hyperteacher.studies.in_context import naming
from modular_hyperteacher.studies.in_context import system as systems
from modular_hyperteacher.studies.in_context import transformer
from modular_hyperteacher.tasks import base as tasks

MODELS = {
    'transformer': models.make_transformer,
    'hypernetwork_transformer': models.make_hypernetwork_transformer,
}
# Task -> what the control's tasks are drawn from.
_UNRELATED = {'modular_regression': modular_regression.draw_unrelated}
# Tasks whose inputs are scenes, not vectors.
_SCENES = ('goals', 'preferences')
# Task -> what is named from attention's codes.
_NAMED = {'fuzzy_logic': naming.TERMS, 'sraven': naming.RULES}


def blocks(
    task: Mapping[str, Any], model: Mapping[str, Any]
) -> dict[str, Callable[..., Any]]:
  """Returns what is called with each block of a config's task and model."""
  return {
      'task': components.task_entry(dict(task)).make,
      'model': components.choose(MODELS, 'model', dict(model)),
      'model.body': transformer.TransformerConfig,
      'model.outer': learner.OuterConfig,
  }


def _make_task(config: Mapping[str, Any]) -> tasks.TaskDistribution:
  block = dict(config['task'])
  make = components.task_entry(block).make
  return contracts.make_task(make, config['task']['name'], block)


def make_model(
    config: Mapping[str, Any], task: tasks.TaskDistribution
) -> models.Model:
  """Returns the model of a config, which learns a task."""
  block = dict(config['model'])
  block.pop('outer', None)
  make = components.choose(MODELS, 'model', block)
  untrusted.check(block.get('body'), dict[str, Any], 'model.body')
  sizes: dict[str, Any] = {
      'body': checked.call(
          transformer.TransformerConfig, 'model.body', block.pop('body')
      ),
      'input_dim': task.input_dim,
      'output_dim': task.output_dim,
  }
  if task.sequence_lengths is None:
    name = config['task']['name']
    errors.require(
        name not in _SCENES and 'num_support' in config['task'],
        'task.name',
        f"'{name}'",
        'a transformer reads tasks of task.num_support examples, all vectors',
    )
    errors.require(
        not task.shared_inputs,
        'task.shared_inputs',
        task.shared_inputs,
        'it must be False, as a transformer takes no inner steps',
    )
    sizes['num_support'] = config['task']['num_support']
  else:
    errors.require(
        make is models.make_transformer,
        'model.name',
        f"'{config['model']['name']}'",
        "only 'transformer' can read the sequences of"
        f" {config['task']['name']}",
    )
    make = models.make_sequence_transformer
    sizes['num_support'], sizes['num_query'] = task.sequence_lengths
  return checked.call(make, 'model', block | sizes)


def build(
    config: Mapping[str, Any],
    training: settings.TrainingConfig,
    execution: settings.ExecutionConfig,
    num_devices: int,
) -> settings.Experiment:
  """Returns the experiment that a config describes, as `build.build`."""
  del num_devices
  task = _make_task(config)
  outer = checked.call_outer(learner.OuterConfig, config['model'], training)
  outer = dataclasses.replace(outer, task_chunk_size=execution.task_chunk_size)
  system = systems.make_system(
      task,
      make_model(config, task),
      outer,
      num_evaluation_tasks=training.num_evaluation_tasks,
      draw_unrelated=_UNRELATED.get(config['task']['name']),
      naming=_NAMED.get(config['task']['name']),
  )
  return settings.Experiment(system, training, execution)


def make_infer(
    config: Mapping[str, Any], key: jax.Array
) -> tuple[tasks.TaskDistribution, Callable[..., Any]]:
  """Returns a run's task, and how a fresh transformer answers one query."""
  task = _make_task(config)
  model = make_model(config, task)
  params = model.init(key)

  def infer(task_params: Any, given: tasks.Task, key: jax.Array) -> Any:
    del task_params, key
    query = given.query.inputs[:1]
    return model.apply(params, None, given.support, query, False).outputs

  return task, infer

"""Builds the episodes and the network of a run from its config.

A new distribution or network needs a file and a line in a table here.
"""

from collections.abc import Callable, Mapping
from typing import Any

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import checked
from modular_hyperteacher.experiments import components
from modular_hyperteacher.experiments import settings
from modular_hyperteacher.studies.meta_seq2seq import learner
from modular_hyperteacher.studies.meta_seq2seq import model as models
from modular_hyperteacher.studies.meta_seq2seq import mutual_exclusivity
from modular_hyperteacher.studies.meta_seq2seq import scan_episodes
from modular_hyperteacher.studies.meta_seq2seq import system as systems

TASKS = {
    'mutual_exclusivity': mutual_exclusivity.MutualExclusivity,
    'scan': scan_episodes.ScanEpisodes,
}
MODELS = {
    'meta_seq2seq': models.MetaSeq2Seq,
    'seq2seq': models.Seq2Seq,
}


def blocks(
    task: Mapping[str, Any], model: Mapping[str, Any]
) -> dict[str, Callable[..., Any]]:
  """Returns block -> the function or class that takes its fields."""
  return {
      'task': components.choose(TASKS, 'task', dict(task)),
      'model': components.choose(MODELS, 'model', dict(model)),
      'model.outer': learner.OuterConfig,
  }


def build(
    config: Mapping[str, Any],
    training: settings.TrainingConfig,
    execution: settings.ExecutionConfig,
    num_devices: int,
) -> settings.Experiment:
  """Returns the experiment of a config; see `build.build`."""
  errors.require(
      execution.task_chunk_size in (None, 1),
      'execution.task_chunk_size',
      execution.task_chunk_size,
      'it must be 1, as episodes are computed one at a time',
  )
  task_block, model_block = dict(config['task']), dict(config['model'])
  make_task = components.choose(TASKS, 'task', task_block)
  task_distribution = checked.call(make_task, 'task', task_block)
  model_config = components.choose(MODELS, 'model', model_block)
  outer = checked.call_outer(learner.OuterConfig, model_block, training)
  del model_block['outer']
  model_block |= {
      'input_vocab': task_distribution.input_vocab,
      'output_vocab': task_distribution.output_vocab,
  }
  network = models.make(checked.call(model_config, 'model', model_block))
  system = systems.make_system(
      task_distribution,
      network,
      outer,
      num_evaluation_tasks=training.num_evaluation_tasks,
      num_devices=num_devices,
  )
  return settings.Experiment(system, training, execution)

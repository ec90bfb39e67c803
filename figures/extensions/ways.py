"""The table of docs/ways_to_recompose.md: all learners on one hyperteacher.

All see tasks of Figure 3B's teacher at laptop scale, on compositional support.
Numbers come from the bundled results, sizes from the configs.
"""

import functools
from typing import Any, NamedTuple

import pandas as pd

from figures.extensions import inference_cost
from figures.library import data
from figures.library import reference
from figures.plotting import stats
from figures.plotting import tables
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import sweeps

_MISSING = 'not trained yet'
_NOTHING = '\N{EN DASH}'


class _Learner(NamedTuple):
  """One row.

  Attributes:
    name: of the learner.
    infers: how it gets to know the task.
    experiment: whose runs it reads.
    fields: path in the config -> value, of its first described run.
    decoding: metric of decoding modules of new combinations.
  """

  name: str
  infers: str
  experiment: str
  fields: dict[str, Any]
  decoding: str = 'r2'


def _gradient(model: str, name: str, infers: str) -> _Learner:
  return _Learner(name, infers, 'fig3b', {'model.name': model})


def _predicted(model: str, name: str, num_steps: int) -> _Learner:
  infers = 'forward pass' + (f', {num_steps} steps' if num_steps else '')
  fields = {'model.name': model, 'model.inner.num_steps': num_steps}
  return _Learner(name, infers, 'amortised', fields)


def _gated(gates: str, name: str, infers: str = '10 steps, gated') -> _Learner:
  fields = {'model.gates': gates, 'model.inner.solver': 'sgd'}
  return _Learner(name, infers, 'sparse_maml', fields)


def _in_context(model: str, name: str) -> _Learner:
  fields = {'model.name': model}
  experiment = 'in_context_hyperteacher'
  return _Learner(name, 'in context', experiment, fields, 'decoding_r2')


_LINEAR, _NONLINEAR = 'linear hypernetwork', 'nonlinear hypernetwork'
_LEARNERS = (
    _gradient('linear_hypernetwork', _LINEAR, '10 gradient steps'),
    _gradient('nonlinear_hypernetwork', _NONLINEAR, '10 gradient steps'),
    _predicted('amortised_linear_hypernetwork', _LINEAR, 0),
    _predicted('amortised_nonlinear_hypernetwork', _NONLINEAR, 0),
    _predicted('amortised_linear_hypernetwork', _LINEAR, 3),
    _predicted('amortised_nonlinear_hypernetwork', _NONLINEAR, 3),
    _gradient('maml', 'MAML', '10 gradient steps'),
    _gradient('anil', 'ANIL', '100 steps, readout'),
    _gated('body', 'BOIL', '10 steps, body'),
    _gated('binary', 'sparse-MAML'),
    _gated('rates', 'Meta-SGD'),
    _in_context('transformer', 'transformer'),
    _in_context('hypernetwork_transformer', 'transformer with bottleneck'),
    _Learner(
        'MLP',
        'given: the mask',
        'given_or_inferred',
        {'model.name': 'multitask_mlp'},
        'decoding_r2_last',
    ),
)


def table(library: data.Library) -> pd.DataFrame:
  """Returns a row per learner, all texts."""
  return pd.DataFrame([_row(library, learner) for learner in _LEARNERS])


def _row(library: data.Library, learner: _Learner) -> dict[str, str]:
  frame = library.values(learner.experiment)
  run = _run(learner, 'random')
  held_out = _run(learner, 'non_compositional')
  task, training = run.config['task'], run.config['training']
  tasks = training['num_outer_steps'] * training['meta_batch_size']
  examples = task['num_support'] + task['num_query']
  if task.get('encoding'):
    examples = task['num_query']  # The others are not used.
  return {
      'learner': learner.name,
      'the task is inferred by': learner.infers,
      'seen': _value(frame, run, 'test') or _MISSING,
      'new': _value(frame, run, 'ood') or _MISSING,
      'module held out': _value(frame, held_out, 'ood') or _NOTHING,
      'R² of decoding': _value(frame, run, 'ood', learner.decoding) or _NOTHING,
      'meta-parameters': f'{_num_params(run.run_id, learner.experiment):,}',
      'examples, millions': f'{tasks * examples / 1e6:.1f}',
      'ms per task': f'{inference_cost.find(run.config):.3f}',
  }


def _run(learner: _Learner, task_support: str) -> sweeps.Run:
  """Returns the first run of a learner that its config describes."""
  wanted = {'task.task_support': task_support, **learner.fields}
  return next(
      run
      for run in reference.described_runs(learner.experiment, 'laptop')
      if wanted.items() <= dict(sweeps.flatten(run.config)).items()
  )


def _value(
    frame: pd.DataFrame, run: sweeps.Run, split: str, metric: str = 'accuracy'
) -> str:
  """Returns a metric of a run at the last step; '' if it is missing."""
  if frame.empty:
    return ''
  cell = {'condition': reference.condition(run.config)}
  values = data.values(frame, cell, split, metric=metric)
  estimate = stats.mean(values[~values.index.duplicated()])
  return tables.with_error(estimate.value, estimate.standard_error)


@functools.cache
def _num_params(run_id: str, experiment: str) -> int:
  """Returns the number of meta-parameters."""
  (run,) = (
      run
      for run in reference.described_runs(experiment, 'laptop')
      if run.run_id == run_id
  )
  num_meta, _ = build.build(run.config, 1).system.num_params
  return num_meta

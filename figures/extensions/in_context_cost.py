"""Measures the CPU time of inference in context and by gradients.

  python -m figures.extensions.in_context_cost

All learners of the bridge, freshly initialised at laptop scale, in turn and
many times over: from support sets to fast parameters, or in context to the
prediction of one query. Writes figures/data/in_context_cost.csv, which the
figure reads. Counts CPU time of all threads; across machines, compare ratios.
"""

from collections.abc import Callable
import pathlib
from typing import Any

import jax
import numpy as np
import pandas as pd

from figures import cli
from figures.extensions import inference_cost
from figures.library import reference
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import components
from modular_hyperteacher.experiments import in_context
from modular_hyperteacher.runs import provenance
from modular_hyperteacher.runs import run_folder

PATH = pathlib.Path(__file__).parents[1] / 'data' / 'in_context_cost.csv'
EXPERIMENTS = ('in_context_hyperteacher', 'fig3b', 'amortised')
NUM_TASKS = 32  # Inferred at once.
_ROUNDS, _CALLS = 20, 5


def make_infer(config: dict[str, Any], num_tasks: int) -> Callable[[], Any]:
  """Returns a compiled function that infers `num_tasks` tasks in context.

  Args:
    config: of a run of an in-context learner.
    num_tasks: how many. Their contexts are drawn once, for all calls.
  """
  block = dict(config['task'])
  make_task = bilevel.task_entry(block).make
  distribution = components.call(make_task, 'task', block)
  model = in_context.make_model(config, distribution)
  params_key, task_key, init_key = jax.random.split(jax.random.key(0), 3)
  task_params = distribution.init(params_key)
  drawn = jax.vmap(lambda k: distribution.sample(task_params, k, 'test'))(
      jax.random.split(task_key, num_tasks)
  )
  params = model.init(init_key)

  def infer(task: Any) -> jax.Array:
    query = task.query.inputs[:1]
    return model.apply(params, None, task.support, query, False).outputs

  program = jax.jit(jax.vmap(infer)).lower(drawn).compile()
  return lambda: program(drawn)


def load() -> pd.DataFrame:
  """Returns what was measured: a row per model, width and inner steps."""
  return pd.read_csv(PATH)


def measure(num_rounds: int = _ROUNDS, num_calls: int = _CALLS) -> pd.DataFrame:
  """Returns the rows of all learners.

  Args:
    num_rounds: over which the median is taken.
    num_calls: timed together, once per round.
  """
  learned: dict[tuple[Any, ...], Callable[[], Any]] = {}
  for experiment in EXPERIMENTS:
    for run in reference.described_runs(experiment, 'laptop'):
      model = run.config['model']
      is_in_context = model['name'] in in_context.MODELS
      name = (
          model['name'],
          model.get('hidden_dim'),
          model['inner']['num_steps'] if 'inner' in model else None,
      )
      if name not in learned:
        make = make_infer if is_in_context else inference_cost.make_infer
        learned[name] = make(run.config, NUM_TASKS)
  seconds = inference_cost.measure(learned, num_rounds, num_calls)
  return pd.DataFrame([
      {
          'model': model,
          'hidden_dim': hidden_dim,
          'num_steps': num_steps,
          'cpu_ms_per_task': 1e3 * np.median(values) / NUM_TASKS,
          'first_quartile': 1e3 * np.quantile(values, 0.25) / NUM_TASKS,
          'third_quartile': 1e3 * np.quantile(values, 0.75) / NUM_TASKS,
          'rounds': num_rounds,
      }
      for (model, hidden_dim, num_steps), values in seconds.items()
  ])


def main() -> None:
  """Measures all learners."""
  facts = provenance.describe()
  frame = measure().assign(
      commit=facts['commit'],
      processor=facts['processor'],
      jax=facts['versions']['jax'],
      date=facts['started'][:10],
  )
  run_folder.write_atomically(
      PATH, frame.to_csv(index=False, float_format='%.4g')
  )
  print(frame.to_string(index=False, float_format='{:.4g}'.format))


if __name__ == '__main__':
  cli.run(main)

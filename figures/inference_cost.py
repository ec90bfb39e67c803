"""Measures what inferring a task costs, for the figure of amortised inference.

From support set to fast parameters, with freshly initialised models of the
laptop preset. All models are timed in turn, many times over, in one process:

  python figures/inference_cost.py

writes figures/data/inference_cost.csv, from which the figure is drawn. CPU time
is counted, of all threads, so that other work on the machine matters little;
compare its ratios, not its values, with those of another machine.
"""

import pathlib
import sys
import time
from typing import Any, Callable

if not __package__:  # Run as a script: imports start at the repository root.
  sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

# pylint: disable=g-import-not-at-top,wrong-import-position
import jax
import numpy as np
import pandas as pd

from figures import cli
from figures import reference
from modular_hyperteacher import experiment as experiments
from modular_hyperteacher import provenance
from modular_hyperteacher import results

PATH = pathlib.Path(__file__).parent / 'data' / 'inference_cost.csv'
EXPERIMENT = 'amortised'
# At once: one after the other, or as an outer step's meta-batch.
BATCHES = (1, 32)
_ROUNDS = 30
_CALLS = 10  # Timed together, once per round.


def make_infer(config: dict[str, Any], num_tasks: int) -> Callable[[], Any]:
  """Returns a function that infers all of `num_tasks` tasks, compiled.

  Args:
    config: of a run.
    num_tasks: whose support sets are drawn once and read at every call.
  """
  built = experiments.build(config, num_devices=1)
  world_key, task_key, init_key, key = jax.random.split(jax.random.key(0), 4)
  task_params = built.task.init(world_key)
  drawn = jax.vmap(lambda k: built.task.sample(task_params, k, 'test'))(
      jax.random.split(task_key, num_tasks)
  )
  meta_params = built.model.init(init_key)
  infer = jax.jit(
      jax.vmap(
          lambda task, k: built.learner.adapt(meta_params, task_params, task, k)
      )
  )
  program = infer.lower(drawn, jax.random.split(key, num_tasks)).compile()
  return lambda: program(drawn, jax.random.split(key, num_tasks))


def measure(
    programs: dict[Any, Callable[[], Any]], rounds: int, calls: int
) -> dict[Any, np.ndarray]:
  """Returns the CPU seconds per call of each program, one per round."""
  seconds = {name: [] for name in programs}
  for call in programs.values():
    jax.block_until_ready(call())
  for _ in range(rounds):
    for name, call in programs.items():
      started = time.process_time()
      for _ in range(calls):
        jax.block_until_ready(call())
      seconds[name].append((time.process_time() - started) / calls)
  return {name: np.array(values) for name, values in seconds.items()}


def load() -> pd.DataFrame:
  """Returns what was measured: a row per model, inner steps and batch."""
  return pd.read_csv(PATH)


def main() -> None:
  """Measures all models of the laptop preset."""
  runs = [
      run
      for run in reference.described_runs(EXPERIMENT, 'laptop')
      if run.config['task']['task_support'] == 'random'
  ]
  programs = {
      (model['name'], model['inner']['num_steps'], num_tasks): make_infer(
          run.config, num_tasks
      )
      for num_tasks in BATCHES
      for run in runs
      for model in [run.config['model']]
  }
  seconds = measure(programs, _ROUNDS, _CALLS)
  facts = provenance.describe()
  frame = pd.DataFrame([
      {
          'model': name,
          'num_steps': num_steps,
          'tasks_at_once': num_tasks,
          'cpu_ms_per_task': 1e3 * np.median(values) / num_tasks,
          'first_quartile': 1e3 * np.quantile(values, 0.25) / num_tasks,
          'third_quartile': 1e3 * np.quantile(values, 0.75) / num_tasks,
          'rounds': _ROUNDS,
          'commit': facts['commit'],
          'processor': facts['processor'],
          'jax': facts['versions']['jax'],
          'date': facts['started'][:10],
      }
      for (name, num_steps, num_tasks), values in seconds.items()
  ])
  results.write_atomically(PATH, frame.to_csv(index=False, float_format='%.4g'))
  print(frame.to_string(index=False, float_format='{:.4g}'.format))


if __name__ == '__main__':
  cli.run(main)

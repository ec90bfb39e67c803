"""Measures what inferring a task costs, for the figure of amortised inference.

From support set to fast parameters, with freshly initialised models at the
laptop's and at the published scale. All models are timed in turn, many times
over, in one process:

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
# Tasks at once: one after the other, or as a meta-batch.
BATCHES = (1, 32)
_ROUNDS = 20
CALLS = {'laptop': 10, 'paper': 1}  # Timed together, once per round.


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
  keys = jax.random.split(key, num_tasks)
  program = infer.lower(drawn, keys).compile()
  return lambda: program(drawn, keys)


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
  """Returns what was measured: a row per preset, model, steps and batch."""
  return pd.read_csv(PATH)


def measure_preset(preset: str) -> pd.DataFrame:
  """Returns the rows of all models of a preset."""
  programs = {
      (model['name'], model['inner']['num_steps'], num_tasks): make_infer(
          run.config, num_tasks
      )
      for num_tasks in BATCHES
      for run in reference.described_runs(EXPERIMENT, preset)
      for model in [run.config['model']]
      if run.config['task']['task_support'] == 'random'
  }
  seconds = measure(programs, _ROUNDS, CALLS[preset])
  return pd.DataFrame([
      {
          'preset': preset,
          'model': name,
          'num_steps': num_steps,
          'tasks_at_once': num_tasks,
          'cpu_ms_per_task': 1e3 * np.median(values) / num_tasks,
          'first_quartile': 1e3 * np.quantile(values, 0.25) / num_tasks,
          'third_quartile': 1e3 * np.quantile(values, 0.75) / num_tasks,
          'rounds': _ROUNDS,
      }
      for (name, num_steps, num_tasks), values in seconds.items()
  ])


def main() -> None:
  """Measures all models of both presets."""
  facts = provenance.describe()
  frame = pd.concat([measure_preset(preset) for preset in CALLS])
  frame = frame.assign(
      commit=facts['commit'],
      processor=facts['processor'],
      jax=facts['versions']['jax'],
      date=facts['started'][:10],
  )
  results.write_atomically(PATH, frame.to_csv(index=False, float_format='%.4g'))
  print(frame.to_string(index=False, float_format='{:.4g}'.format))


if __name__ == '__main__':
  cli.run(main)

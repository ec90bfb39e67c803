"""Measures the CPU time of inference, for the figure of amortised inference.

  python -m figures.extensions.inference_cost

Times adaptation to a support set, with freshly initialised models at laptop and
published scale, all models in turn and many times over. Writes
figures/data/inference_cost.csv, which the figure reads. Counts CPU time of all
threads, so other work on the machine matters little. Across machines, compare
ratios, not values.
"""

from collections.abc import Callable
import pathlib
import time
from typing import Any, cast

import jax
import numpy as np
import pandas as pd

from figures import cli
from figures.library import reference
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import build as experiments
from modular_hyperteacher.runs import provenance
from modular_hyperteacher.runs import run_folder

PATH = pathlib.Path(__file__).parents[1] / 'data' / 'inference_cost.csv'
EXPERIMENT = 'amortised'
BATCHES = (1, 32)  # Tasks inferred at once.
_ROUNDS = 20
CALLS = {'laptop': 10, 'paper': 1}  # Calls timed together, once per round.


def make_infer(config: dict[str, Any], num_tasks: int) -> Callable[[], Any]:
  """Returns a compiled function that infers `num_tasks` tasks.

  Args:
    config: of a run.
    num_tasks: how many. Their support sets are drawn once, for all calls.
  """
  built = cast(
      bilevel.BilevelExperiment, experiments.build(config, num_devices=1)
  )
  params_key, task_key, init_key, key = jax.random.split(jax.random.key(0), 4)
  task_params = built.task.init(params_key)
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
  run_folder.write_atomically(
      PATH, frame.to_csv(index=False, float_format='%.4g')
  )
  print(frame.to_string(index=False, float_format='{:.4g}'.format))


if __name__ == '__main__':
  cli.run(main)

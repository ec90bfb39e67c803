"""Measures the CPU time of inference, of all learners of a hyperteacher's task.

  python -m figures.extensions.inference_cost

Times freshly initialised learners in turn, many times over: from a support set
to fast parameters; to the prediction of one query, if they learn in context or
are given the task. Writes figures/data/inference_cost.csv, which figures read.
Counts CPU time of all threads and keeps the smallest of all rounds, so other
work on the machine matters little. Across machines, compare ratios.
"""

from collections.abc import Callable, Mapping
import time
from typing import Any, cast

import jax
import numpy as np
import pandas as pd

from modular_hyperteacher.cli import script
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import measured
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.runs import provenance
from modular_hyperteacher.tasks import base as tasks

# A row per preset and learner.
MEASURED = measured.Table(data.BUNDLED / 'inference_cost.csv')
NUM_TASKS = 32  # Inferred at once.
_ROUNDS = 20
CALLS = {'laptop': 10, 'paper': 1}  # Calls timed together, once per round.
# Column -> path in the config.
FIELDS = {
    'model': 'model.name',
    'gates': 'model.gates',
    'hidden_dim': 'model.hidden_dim',
    'num_steps': 'model.inner.num_steps',
}


def _make_infer(
    config: Mapping[str, Any], key: jax.Array
) -> tuple[tasks.TaskDistribution, Callable[..., Any]]:
  """Returns the task of a bilevel run, and how a fresh model infers one."""
  built = cast(bilevel.BilevelExperiment, build.build(config, num_devices=1))
  model = built.model
  meta_params = model.init(key)

  def infer(task_params: Any, given: tasks.Task, key: jax.Array) -> Any:
    fast_params = built.learner.adapt(meta_params, task_params, given, key)
    if jax.tree.leaves(fast_params):
      return fast_params
    query = model.encode(meta_params, given.query.inputs[:1])
    return model.decode(meta_params, fast_params, query)

  return built.task, infer


def make_infer(config: dict[str, Any], num_tasks: int) -> Callable[[], Any]:
  """Returns a compiled function that infers some tasks, drawn once."""
  keys = iter(jax.random.split(jax.random.key(0), 4))
  make = build.infer_maker(config)
  task, infer = (make or _make_infer)(config, next(keys))
  task_params = task.init(next(keys))
  drawn = jax.vmap(lambda k: task.sample(task_params, k, 'test'))(
      jax.random.split(next(keys), num_tasks)
  )
  of_tasks = jax.vmap(infer, (None, 0, 0))
  arguments = task_params, drawn, jax.random.split(next(keys), num_tasks)
  program = jax.jit(of_tasks).lower(*arguments).compile()
  return lambda: program(*arguments)


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


def find(preset: str, fields: Mapping[str, Any]) -> float:
  """Returns the ms per task of the one learner with these fields, by path.

  Raises:
    ValueError: if none was measured, or several. Only those of FIELDS count.
  """
  known = {name: fields[p] for name, p in FIELDS.items() if p in fields}
  (cost,) = pick.rows(MEASURED.load(), {'preset': preset, **known})[
      'cpu_ms_per_task'
  ]
  return cost


def describe(config: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the fields that tell the learner of a run from others, by path."""
  fields = dict(sweeps.flatten(dict(config)))
  return {path: fields.get(path) for path in FIELDS.values()}


def timed_configs(preset: str) -> list[dict[str, Any]]:
  """Returns a config of every learner that is timed."""
  timed = [('fig3b', {})] if preset == 'laptop' else []
  for study in plugins.studies():
    timed += study.timed.get(preset, {}).items()
  by_fields = {}
  for experiment, wanted in timed:
    for run in reference.find_runs(experiment, preset, wanted):
      by_fields.setdefault(tuple(describe(run.config).values()), run.config)
  return list(by_fields.values())


def measure_preset(preset: str) -> pd.DataFrame:
  """Returns the rows of all learners of a preset."""
  configs = timed_configs(preset)
  programs = dict(enumerate(make_infer(c, NUM_TASKS) for c in configs))
  seconds = measure(programs, _ROUNDS, CALLS[preset])
  return pd.DataFrame([
      {
          'preset': preset,
          **dict(zip(FIELDS, describe(config).values())),
          'cpu_ms_per_task': 1e3 * seconds[index].min() / NUM_TASKS,
          'rounds': _ROUNDS,
      }
      for index, config in enumerate(configs)
  ])


def main() -> None:
  """Measures all learners of both presets."""
  facts = provenance.describe()
  frame = pd.concat([measure_preset(preset) for preset in CALLS])
  frame = frame.assign(
      commit=facts['commit'],
      processor=facts['processor'],
      jax=facts['versions']['jax'],
      date=facts['started'][:10],
  )
  MEASURED.write(frame, '%.4g')
  print(frame.to_string(index=False, float_format='{:.4g}'.format))


if __name__ == '__main__':
  script.run(main)

"""What a step of every rule costs: products, operations, CPU time, memory.

  python -m modular_hyperteacher.studies.outer_gradients.costs

Of the linear hypernetwork at laptop scale, one seed, 32 tasks per step. Writes
data/costs.csv, which figure `cr_costs` and claim CR-6 read. It takes about
three minutes of one core. CPU time is that of all threads, the smallest of
several rounds, so other work on the machine matters little. Memory is XLA's
figure of a compiled step's temporary arrays.
"""

from collections.abc import Iterator
import pathlib
import time
from typing import Any, NamedTuple

import jax
import pandas as pd

from modular_hyperteacher.cli import script
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.library import measured
from modular_hyperteacher.learning import programs
from modular_hyperteacher.profiling import flops
from modular_hyperteacher.runs import provenance
from modular_hyperteacher.studies.outer_gradients.configs import blocks
from modular_hyperteacher.studies.outer_gradients.configs import cr_long
from modular_hyperteacher.studies.outer_gradients.configs import cr_training

# A row per rule, N and T.
MEASURED = measured.Table(pathlib.Path(__file__).parent / 'data' / 'costs.csv')
_ROUNDS, _STEPS = 3, 4


class Case(NamedTuple):
  """A rule, the inner steps N, and its own steps T, if it has any."""

  gradient: str
  num_steps: int
  num_last_steps: int | None


def rules() -> Iterator[Case]:
  """Yields what is measured: the rules of both configs."""
  for gradient, last in (cr_training.ALL | cr_training.LEARNED).items():
    yield Case(gradient, cr_training.NUM_STEPS, last or None)
  for gradient, last in cr_long.RULES:
    yield Case(gradient, cr_long.NUM_STEPS, last)


def products(rule: Case) -> int:
  """Returns the products of support rows with an adapted weight matrix.

  One for a forward pass, three with the gradient, six for a product with the
  Hessian and to differentiate through an inner step. The query set is as large
  as the support set.
  """
  n, last = rule.num_steps, rule.num_last_steps or 0
  more = {
      'unrolled': 6 * n + 3,
      'truncated': 6 * last + 3,
      'first_order': 3,
      'implicit_cg': 6 * last + 9,
      'implicit_neumann': 6 * last + 9,
      't1_t2': 9,
      'contrastive_standard': 6 * last + 9,
      'contrastive_rescaled': 6 * last + 9,
      'contrastive_symmetric': 12 * last + 9,
      'contrastive_second_order': 12 * last + 15,
      'contrastive_control': 9 * last + 9,
      'linearised_control': 6 * last + 9,
  }
  return 3 * n + more[rule.gradient]


def config_of(rule: Case, preset: str = 'laptop') -> dict[str, Any]:
  """Returns the config of a run of one seed."""
  made = blocks.base(preset, num_seeds=1)
  model = blocks.proximal(
      made,
      'linear_hypernetwork',
      rule.num_steps,
      blocks.rule(rule.gradient, rule.num_last_steps or 0),
  )
  made['models'] = {'measured': model}
  made['training']['num_evaluation_tasks'] = 1
  grid = dict(model=['measured'])
  (run,) = sweeps.expand(experiment.make('cr_costs', preset, grid, **made))
  return run.config


def measure(rule: Case) -> dict[str, Any]:
  """Returns the row of a rule."""
  config = config_of(rule)
  built = build.build(config, num_devices=1)
  compiled = programs.Programs(
      built.system, build.root_keys(built.training), build.draw_tasks(built)
  )
  state = compiled.init()
  analysis: Any = compiled.compile_training(state).memory_analysis()
  times = []
  for _ in range(_ROUNDS + 1):  # The first warms up.
    started = time.process_time()
    state, _ = compiled.train(state, _STEPS)
    jax.block_until_ready(state)
    times.append((time.process_time() - started) / _STEPS)
  return {
      **rule._asdict(),
      'products': products(rule),
      'mega_operations': (flops.outer_step(config) or float('nan')) / 1e6,
      'cpu_ms': 1e3 * min(times[1:]),
      'memory_mib': analysis.temp_size_in_bytes / 2**20,
  }


def find(
    gradient: str, *, num_steps: int, num_last_steps: int | None
) -> pd.Series:
  """Returns the row of a rule."""
  table = MEASURED.load()
  kept = (table['gradient'] == gradient) & (table['num_steps'] == num_steps)
  if num_last_steps:
    kept &= table['num_last_steps'] == num_last_steps
  (index,) = table.index[kept]
  return table.loc[index]


def main() -> None:
  """Measures all rules."""
  facts = provenance.describe()
  table = pd.DataFrame([measure(rule) for rule in rules()]).assign(
      processor=facts['processor'], date=facts['started'][:10]
  )
  MEASURED.write(table, '%.4g')
  print(table.to_string(index=False))


if __name__ == '__main__':
  script.run(main)

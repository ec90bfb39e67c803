"""Measures step times and writes them into two pages of the documentation.

  python figures/performance_page.py --only=goals

docs/performance_cases.csv lists what is measured. `benchmark.py` measures every
case in a separate process; docs/performance.json keeps the results.
docs/performance.md shows times per model, and its appendix
docs/performance_log.md how a step grows. Known cases are measured again only
with `--again`. A machine with a GPU measures only the GPU cases, any other
machine only the rest. Text outside the tables is hand-written; a case that was
not measured has an empty row.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple

from absl import flags
import jax
import pandas as pd

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher.cli import script
from modular_hyperteacher.figures.plotting import tables

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_CASES = _ROOT / 'docs' / 'performance_cases.csv'
_JSON = _ROOT / 'docs' / 'performance.json'
_PAGE = _ROOT / 'docs' / 'performance.md'
_LOG = _ROOT / 'docs' / 'performance_log.md'

_PUBLISHED_BATCH = 128
# The table of meta-seq2seq, whose steps are single episodes.
_EPISODES = 'episodes'
_GPU = 'gpu'
# Tables of the page; all others are in the log.
_ON_PAGE = ('steps', _GPU)
# GPU steps are short, so several are timed together.
_GPU_STEPS = 20
_NOT_PASSED_ON = ('XLA_FLAGS', 'XLA_PYTHON_CLIENT_PREALLOCATE')


class Case(NamedTuple):
  """A measurement, a row of docs/performance_cases.csv."""

  table: str
  world: str
  model: str
  change: str  # Difference from the published scale, in words.
  config: str
  fields: str  # Of the config, such as 'task.num_modules=4 ...'.
  seeds: int
  devices: int

  @property
  def name(self) -> str:
    """Unique among cases."""
    words = (self.table, self.world, self.model, self.change)
    return ' '.join(word for word in words if word)


def cases() -> list[Case]:
  """Returns all cases on the pages."""
  rows = pd.read_csv(_CASES, keep_default_na=False)
  return [Case(*row) for row in rows.itertuples(index=False)]


def known() -> dict[str, dict[str, Any]]:
  """Returns the measurements by the case's name."""
  return json.loads(_JSON.read_text('utf-8')) if _JSON.exists() else {}


def measure(case: Case, num_tasks: int, repeats: int) -> dict[str, Any]:
  """Runs the benchmark of a case in a separate process; returns its row.

  Raises:
    SystemExit: if the benchmark failed, and said why.
  """
  fields: dict[str, Any] = {'training.meta_batch_size': num_tasks}
  fields |= dict(field.split('=') for field in case.fields.split())
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / 'row.json'
    done = subprocess.run(
        [
            sys.executable,
            '-m',
            'modular_hyperteacher.benchmark',
            f'--config={case.config}',
            *(f'--config.{field}={value}' for field, value in fields.items()),
            f'--only=model={case.model}',
            f'--seeds={case.seeds}',
            f'--host_devices={case.devices}',
            f'--steps={_GPU_STEPS if case.table == _GPU else 1}',
            f'--repeats={repeats}',
            f'--json={path}',
        ],
        check=False,
        cwd=_ROOT,
        # XLA_FLAGS may set a different number of devices.
        env={k: v for k, v in os.environ.items() if k not in _NOT_PASSED_ON},
    )
    if done.returncode:
      sys.exit(done.returncode)
    (row,) = json.loads(path.read_text('utf-8'))
  return row | {'num_tasks': int(fields['training.meta_batch_size'])}


def make_tables(rows: dict[str, dict[str, Any]]) -> dict[str, pd.DataFrame]:
  """Returns the pages' tables, given measurements by the case's name."""
  lines = {}
  for case in cases():
    row = rows.get(case.name)
    line = {'world': case.world, 'model': case.model.replace('_', ' ')}
    if case.table == _GPU:
      line |= {'seeds': str(case.seeds)}
    elif case.change:
      line = {'case': case.change}
    lines.setdefault(case.table, []).append(line | _describe(case, row))
  return {name: pd.DataFrame(lines_) for name, lines_ in lines.items()}


def _describe(case: Case, row: dict[str, Any] | None) -> dict[str, str]:
  """Returns the columns of a case, as text."""
  if row is None:
    return {'tasks timed': 'not measured'}
  if case.table == _GPU:
    return _describe_on_gpu(row)
  batch = 1 if case.table == _EPISODES else _PUBLISHED_BATCH
  times = batch / row['num_tasks']
  seconds = times * row['step_cpu_seconds']
  rate = row['least_flops'] / row['step_cpu_seconds']
  peak = 2 * 3072**3 / row['unit_cpu_seconds']
  return {
      'tasks timed': str(row['num_tasks']),
      'tasks per chunk': str(row['task_chunk_size'] or batch),
      f'CPU s / {"episode" if batch == 1 else f"{batch} tasks"}': (
          f'{seconds:.3g}'
      ),
      'MU': f'{times * row["cpu_mu"]:.3g}',
      'lower bound, GFLOP': f'{times * row["least_flops"] / 1e9:.3g}',
      'FLOP utilisation': f'{rate / peak:.2f}',
      'seed steps / CPU s': f'{row["num_seeds"] / seconds:.3g}',
      'peak memory, MiB': f'{row["peak_bytes"] / 2**20:.0f}',
      'load': f'{row["load_average"]:.0f}',
  }


def _describe_on_gpu(row: dict[str, Any]) -> dict[str, str]:
  milliseconds = 1e3 * row['step_seconds']
  return {
      'GPU': row['provenance']['device_kind'].split()[1],
      'tasks timed': str(row['num_tasks']),
      'tasks per chunk': str(row['task_chunk_size']),
      'ms / step': f'{milliseconds:.3g}',
      'ms / step and seed': f'{milliseconds / row["num_seeds"]:.3g}',
      'TFLOP/s': f'{row["least_flops"] / row["step_seconds"] / 1e12:.3g}',
      'of the product': f'{row["matmul_share"]:.0%}',
      'peak memory, MiB': f'{row["peak_bytes"] / 2**20:.0f}',
  }


def pages(rows: dict[str, dict[str, Any]]) -> dict[pathlib.Path, str]:
  """Returns the text of both pages with their tables, by the page's path."""
  texts = {path: path.read_text('utf-8') for path in (_PAGE, _LOG)}
  for name, frame in make_tables(rows).items():
    path = _PAGE if name in _ON_PAGE else _LOG
    table = tables.to_markdown(frame)
    texts[path] = tables.fill(texts[path], {name: table})
  return texts


def define_flags() -> None:
  """Defines the flags; not at import, where other commands' flags exist."""
  flags.DEFINE_string('only', '', 'Measure cases whose name contains this.')
  flags.DEFINE_integer(
      'tasks', 128, 'Tasks per step; times are given for 128.', lower_bound=1
  )
  flags.DEFINE_boolean('again', False, 'Measure known cases again.')
  flags.DEFINE_boolean('draw_only', False, 'Only write the pages.')
  flags.DEFINE_integer('repeats', 5, 'Steps that are timed.', lower_bound=1)


def main() -> None:
  """Measures missing cases and writes the pages."""
  given = flags.FLAGS
  names = [case.name for case in cases()]
  errors.require(
      any(given.only in name for name in names),
      '--only',
      f"'{given.only}'",
      f"it must be part of a case's name, such as '{names[0]}'",
  )
  # Leave the GPU's memory to the measuring processes.
  os.environ['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false'
  rows = known()
  for case in cases():
    is_known = case.name in rows and not given.again
    if given.draw_only or is_known or given.only not in case.name:
      continue
    if (case.table == _GPU) != (jax.default_backend() == 'gpu'):
      continue
    rows[case.name] = measure(case, given.tasks, given.repeats)
    files.write_atomically(_JSON, json.dumps(rows, indent=2) + '\n')
  for path, text in pages(rows).items():
    files.write_atomically(path, text)


if __name__ == '__main__':
  define_flags()
  script.run(main)

"""Measures step times and writes them into two pages of the documentation.

  python figures/performance_page.py --only=goals

`benchmark.py` measures every case in a separate process; docs/performance.json
keeps the results. docs/performance.md shows times per model, and its appendix
docs/performance_log.md how a step grows. Known cases are measured again only
with `--again`. A machine with a GPU measures only the GPU cases, any other
machine only the rest. Text outside the tables is hand-written; a case that was
not measured has an empty row.
"""

import json
import os
import pathlib
import re
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
_JSON = _ROOT / 'docs' / 'performance.json'
_PAGE = _ROOT / 'docs' / 'performance.md'
_LOG = _ROOT / 'docs' / 'performance_log.md'

_MODELS = ('linear_hypernetwork', 'nonlinear_hypernetwork', 'anil', 'maml')
_CONFIGS = {
    'hyperteacher': ('configs/fig3b.py:paper', {'task.num_modules': 4}),
    'preferences': ('configs/fig4c.py:paper', {}),
    'goals': ('configs/fig4e.py:paper', {}),
    'theory': ('configs/fig2c.py:paper', {'training.meta_batch_size': 64}),
    'scan': (
        'configs/scan_add_jump.py:paper',
        {'training.meta_batch_size': 1},
    ),
}
_WORLDS = ('hyperteacher', 'preferences', 'goals')
_PUBLISHED_BATCH = 128
# The table of meta-seq2seq, whose steps are single episodes.
_EPISODES = 'episodes'
_GPU = 'gpu'
# Tables of the page; all others are in the log.
_ON_PAGE = ('steps', _GPU)
_GPU_NAME = re.compile(rf'{_GPU} (\w+) (\w+) (\d+) seeds, (\d+) at once(.*)')
# GPU steps are short, so several are timed together.
_GPU_STEPS = 20
_NOT_PASSED_ON = ('XLA_FLAGS', 'XLA_PYTHON_CLIENT_PREALLOCATE')


class Case(NamedTuple):
  """A measurement."""

  table: str
  world: str
  model: str
  change: str = ''  # Difference from the published scale, in words.
  fields: dict[str, Any] = {}
  seeds: int = 1
  devices: int = 1

  @property
  def name(self) -> str:
    """Unique among cases."""
    words = (self.table, self.world, self.model, self.change)
    return ' '.join(word for word in words if word)


def cases() -> list[Case]:
  """Returns all cases on the pages."""
  steps = [
      Case('steps', world, model) for world in _WORLDS for model in _MODELS
  ]
  linear = 'hyperteacher', 'linear_hypernetwork'
  seeds = [Case('seeds', *linear, f'{n} seeds', seeds=n) for n in (1, 3, 10)]
  devices = [
      Case('devices', *linear, f'{n} devices', devices=n) for n in (1, 2)
  ]
  growth = [
      Case('growth', *linear, f'{words} {value}', {field: value})
      for words, field, values in (
          ('modules', 'task.num_modules', (2, 4, 8)),
          ('width', 'models.linear_hypernetwork.hidden_dim', (64, 128, 256)),
          ('support examples', 'task.num_support', (128, 256, 512)),
          ('tasks', 'training.meta_batch_size', (8, 16, 32)),
          ('tasks at once', 'execution.task_chunk_size', (1, 2, 4, 8)),
      )
      for value in values
  ]
  episodes = [Case(_EPISODES, 'scan', 'meta_seq2seq')]
  return steps + seeds + devices + growth + episodes + _gpu_cases()


def _gpu_cases() -> list[Case]:
  """Returns the usual cases, and all others that were measured on a GPU."""
  usual = [
      f'{_GPU} {world} {model} 1 seeds, 32 at once'
      for world in _WORLDS
      for model in _MODELS
  ]
  matches = map(_GPU_NAME.fullmatch, {*usual, *known()})
  parts = [match.groups() for match in matches if match]
  return [
      Case(
          _GPU,
          world,
          model,
          f'{seeds} seeds, {chunk} at once{gpu}',
          {'execution.task_chunk_size': int(chunk)},
          seeds=int(seeds),
      )
      for world, model, seeds, chunk, gpu in sorted(
          parts, key=lambda x: (x[0], x[1], int(x[2]), int(x[3]), x[4])
      )
  ]


def known() -> dict[str, dict[str, Any]]:
  """Returns the measurements by the case's name."""
  return json.loads(_JSON.read_text('utf-8')) if _JSON.exists() else {}


def measure(case: Case, num_tasks: int, repeats: int) -> dict[str, Any]:
  """Runs the benchmark of a case in a separate process; returns its row.

  Raises:
    SystemExit: if the benchmark failed, and said why.
  """
  config, fields = _CONFIGS[case.world]
  fields = {'training.meta_batch_size': num_tasks} | fields | case.fields
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / 'row.json'
    done = subprocess.run(
        [
            sys.executable,
            '-m',
            'modular_hyperteacher.benchmark',
            f'--config={config}',
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
  return row | {'num_tasks': fields['training.meta_batch_size']}


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

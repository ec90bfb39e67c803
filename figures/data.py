"""Finished runs as one long table per experiment.

The bundled results lie in the folder `data/` beside this file.
"""

import hashlib
import json
import pathlib
from typing import Any

import pandas as pd

from configs import common
from figures import reference
from figures import storage
from modular_hyperteacher import sweeps

BUNDLED = pathlib.Path(__file__).parent / 'data'
COLUMNS = (
    'experiment',
    'preset',  # 'smoke', 'laptop' or 'paper'
    'source',  # 'own' or 'bundled'
    'run_id',
    'condition',  # the same for runs that differ in their seeds alone
    'model',
    'task_support',
    'num_modules',  # M, the teacher's
    'max_active',  # K
    'num_outer_steps',
    'num_seeds',  # of the run
    'commit',
    'published_scale',  # whether nothing differs from what the paper ran
    'seed',
    'kind',  # evaluated at the 'last' step or at 'best_validation'
    'split',
    'metric',
    'value',
)


def load(
    results_root: pathlib.Path, bundled_root: pathlib.Path = BUNDLED
) -> dict[str, pd.DataFrame]:
  """Returns experiment -> a row per run, seed, kind, split and metric.

  An experiment is read from one place only: of the user's own results and,
  failing those, of the bundled ones, the largest preset with a finished run.
  The user's smoke results come last of all: they say nothing about a claim.

  Args:
    results_root: the folder that training wrote to; need not exist.
    bundled_root: the folder of the bundles.

  Returns:
    Tables with the columns COLUMNS. What was not measured has no row.
  """
  own = _find(results_root)
  bundled = _find(bundled_root)
  frames = {}
  for experiment in sorted({name for name, _ in own + bundled}):
    order = [('own', results_root, preset) for preset in ('paper', 'laptop')]
    order += [('bundled', bundled_root, p) for p in reversed(common.PRESETS)]
    order += [('own', results_root, 'smoke')]
    source, root, preset = next(
        (source, root, preset)
        for source, root, preset in order
        if (experiment, preset) in (own if source == 'own' else bundled)
    )
    finished = storage.read(root / experiment / preset)
    frames[experiment] = _join(finished, experiment, preset, source)
  return frames


def empty() -> pd.DataFrame:
  """Returns the table of an experiment without a finished run."""
  return pd.DataFrame(columns=list(COLUMNS))


def select_conditions(
    frame: pd.DataFrame, cell: tuple[str, ...]
) -> tuple[pd.DataFrame, dict[str, tuple]]:
  """Keeps one condition per cell of a figure; seeds of it are pooled.

  A preset's folder may hold more than one: the same model trained with and
  without an overridden field. The one with the most outer steps is kept, then
  the one with the most seeds.

  Args:
    frame: as `load` returns it.
    cell: the columns that tell the figure's cells apart.

  Returns:
    The rows that are kept; and of each condition that is not, a run id and
    its cell.
  """
  kept, left_out = [], {}
  for names, rows in frame.groupby(list(cell), dropna=False):
    sizes = rows.groupby('condition').agg(
        steps=('num_outer_steps', 'max'),
        seeds=('seed', 'nunique'),
        run_id=('run_id', 'min'),
    )
    sizes = sizes.sort_values(['steps', 'seeds', 'run_id'])
    kept.append(rows[rows['condition'] == sizes.index[-1]])
    left_out |= {run_id: names for run_id in sizes['run_id'].iloc[:-1]}
  point = ['condition', 'seed', 'kind', 'split', 'metric']
  selected = pd.concat(kept) if kept else frame
  return selected.drop_duplicates(point, ignore_index=True), left_out


def values(
    frame: pd.DataFrame,
    split: str,
    *,
    metric: str = 'accuracy',
    kind: str = 'last',
    **cell: Any,
) -> pd.Series:
  """Returns a metric indexed by seed; empty where it was not measured.

  Args:
    frame: with one condition per cell.
    split: such as 'ood'.
    metric: such as 'accuracy'.
    kind: 'last' or 'best_validation'.
    **cell: column = value, such as model='anil'.
  """
  wanted = {'split': split, 'metric': metric, 'kind': kind, **cell}
  for column, value in wanted.items():
    frame = frame[frame[column] == value]
  return frame.set_index('seed')['value'].astype(float).dropna()


def _find(root):
  return [
      (folder.parent.name, folder.name)
      for folder in root.glob('*/*')
      if folder.name in common.PRESETS and storage.has_results(folder)
  ]


def _join(finished, experiment, preset, source):
  """Sets beside every value what is known of its run."""
  facts = pd.DataFrame([
      {'run_id': run_id, **_describe(experiment, preset, run)}
      for run_id, run in finished.runs.items()
  ])
  frame = finished.values.merge(facts, on='run_id', validate='many_to_one')
  frame = frame.assign(experiment=experiment, preset=preset, source=source)
  return frame[list(COLUMNS)]


def _describe(experiment, preset, run):
  config = run['config']
  task, training = config['task'], config['training']
  commits = dict.fromkeys(str(s.get('commit')) for s in run['sessions'])
  return {
      'condition': _condition(config),
      'model': config['model']['name'],
      'task_support': task.get('task_support'),
      'num_modules': task.get('num_modules'),
      'max_active': task.get('max_active'),
      'num_outer_steps': training['num_outer_steps'],
      'num_seeds': len(training['seeds']),
      'commit': ', '.join(commits),
      'published_scale': reference.is_published_scale(
          experiment, preset, config
      ),
  }


def _condition(config):
  decisive = {name: config[name] for name in sweeps.IDENTITY}
  training = dict(decisive['training'], seeds=None)
  text = json.dumps(decisive | {'training': training}, sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()[:10]

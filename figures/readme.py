"""Writes the tables of results in README.md and docs.

  python figures/readme.py

README.md has a row per figure of the paper, docs/results.md a row per claim,
docs/verdicts.md the verdicts that the seeds of the presets do not reach and the
claims that are not followed over training, docs/ways_to_recompose.md a row per
learner. All depend on the bundled results alone, so they are the same on all
machines; a test compares them.
"""

import dataclasses
import functools
import pathlib
import re
import textwrap
from typing import Any

import pandas as pd

from modular_hyperteacher import files
from modular_hyperteacher.cli import formats
from modular_hyperteacher.cli import script
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.figures.extensions import over_training
from modular_hyperteacher.figures.judging import students
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.judging import written
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import agreement
from modular_hyperteacher.figures.paper import published_scale
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.figures.plotting import tables
from modular_hyperteacher.figures.report import overview

_ROOT = pathlib.Path(__file__).resolve().parents[1]
README = _ROOT / 'README.md'
RESULTS = _ROOT / 'docs' / 'results.md'
VERDICTS = _ROOT / 'docs' / 'verdicts.md'
WAYS = _ROOT / 'docs' / 'ways_to_recompose.md'


def main() -> None:
  """Replaces the tables on all pages."""
  library = data.Library(data.BUNDLED / 'nothing')
  entries = claims.evaluate(library)
  for path, text in pages(library, entries).items():
    files.write_atomically(path, text)
    print(path)


def pages(
    library: data.Library, entries: list[verdicts.Entry]
) -> dict[pathlib.Path, str]:
  """Returns path -> text of all pages, with current tables.

  Args:
    library: the finished runs.
    entries: one per claim, from `claims.evaluate`.

  Raises:
    ValueError: if a page lacks the markers of its table.
  """
  total, rule = (
      textwrap.fill(text, 118, break_on_hyphens=False)
      for text in (
          overview.summarise(claims.known(), entries),
          written.RULE,
      )
  )
  figures = f'{figure_table(library, entries)}\n{total}\n'
  all_claims = claim_table(library, entries)
  tables_of = {
      README: {'figures': figures},
      RESULTS: {
          'claims': f'{all_claims}\n{total}\n\n{rule}\n',
          'published': published_table(library),
      },
      VERDICTS: {
          'seeds': seeds_table(library, entries),
          'one point': one_point_table(library),
      },
      WAYS: {'learners': tables.to_markdown(learners.table(library))},
  }
  return {
      path: formats.fill(path.read_text('utf-8'), of_page)
      for path, of_page in tables_of.items()
  }


def figure_table(library: data.Library, entries: list[verdicts.Entry]) -> str:
  """Returns the README's table: a row per figure or table of the paper."""
  rows = []
  for artefact, finding in overview.FINDINGS.items():
    of_artefact = [
        (claim, entry)
        for claim, entry in zip(claims.known(), entries, strict=True)
        if claim.artefact == artefact
    ]
    ids: dict[str, list[str]] = {}
    for _, entry in of_artefact:
      ids.setdefault(entry['verdict'], []).append(entry['id'])
    verdict = '; '.join(
        f'{verdict} ({", ".join(names)})' if len(ids) > 1 else verdict
        for verdict, names in ids.items()
    )
    experiments = [claim.experiment for claim, _ in of_artefact]
    rows.append({
        'figure': artefact,
        'the paper': finding['published'],
        'here': re.sub(
            '{(.*?)}',
            lambda match: _levels(library, *match[1].split()),
            finding['here'],
        ),
        # Tables A2 to A8 make no claim.
        'verdict': verdict or agreement.summarise(library)[0],
        'flag of `main`': _flag([*experiments, agreement.EXPERIMENT][0]),
    })
  return tables.to_markdown(pd.DataFrame(rows))


def published_table(library: data.Library) -> str:
  """Returns a row per published number that a finished run compares with."""
  figures = registry.figures().values()
  experiments = dict.fromkeys(e for f in figures for e in f.experiments)
  rows = published_scale.rows(library, list(experiments))
  counted = '. '.join(agreement.summarise(library))
  return (
      f'Tables A2 to A8: {counted}.\n\n{tables.to_markdown(pd.DataFrame(rows))}'
  )


def claim_table(library: data.Library, entries: list[verdicts.Entry]) -> str:
  """Returns a row per claim, and per experiment without claims."""
  numbers = ('verdict', 'effect', 'to exceed', 'p', 'seeds', 'scale')
  rows, seen = [], set()
  for claim, entry in zip(claims.known(), entries, strict=True):
    scale = entry['preset'] or ''
    rows.append({
        'claim': f'{claim.id} ({claim.artefact})',
        'what is claimed': claim.sentence,
        'verdict': entry['verdict'],
        'effect': tables.with_error(entry['effect'], entry['standard_error']),
        'to exceed': '' if entry['bound'] is None else f'{entry["bound"]:g}',
        'p': tables.number(entry['p']),
        'seeds': str(entry['num_seeds'] or ''),
        'scale': scale,
        'flag of `main`': _flag(claim.experiment, scale),
        'cost': _cost(library, claim.experiment, seen, scale or 'laptop'),
    })
  for name, figure in registry.figures().items():
    for experiment in figure.experiments:
      if experiment not in seen:
        rows.append({
            'claim': f'none ({name})',
            'what is claimed': figure.title,
            **dict.fromkeys(numbers, ''),
            'flag of `main`': _flag(experiment),
            'cost': _cost(library, experiment, seen),
        })
  return tables.to_markdown(pd.DataFrame(rows))


def seeds_table(library: data.Library, entries: list[verdicts.Entry]) -> str:
  """Returns the claims whose verdict differs with the seeds of the preset."""
  changed: dict[tuple[str, str], list[str]] = {}
  for claim, entry in zip(claims.known(), entries, strict=True):
    if reference.described_runs(claim.experiment, 'laptop'):
      few = dataclasses.replace(claim, read=_of_preset(claim.read))
      both = entry['verdict'], verdicts.evaluate(few, library)['verdict']
      changed.setdefault(both, []).append(claim.id)
  rows = [
      {
          'all bundled seeds': of_all,
          'seeds of the preset': of_few,
          'claims': ', '.join(ids),
      }
      for (of_all, of_few), ids in sorted(changed.items(), reverse=True)
      if of_all != of_few
  ]
  return tables.to_markdown(pd.DataFrame(rows))


def one_point_table(library: data.Library) -> str:
  """Returns the claims that figure `over_training` shows as one point."""
  ids: dict[str, list[str]] = {}
  for claim in claims.known():
    if over_training.is_one_point(claim, library):
      ids.setdefault(claim.experiment, []).append(claim.id)
  rows = [
      {'claims': ', '.join(of_experiment), 'flag of `main`': _flag(experiment)}
      for experiment, of_experiment in ids.items()
  ]
  return tables.to_markdown(pd.DataFrame(rows))


@functools.cache
def _of_preset(read: verdicts.Read) -> verdicts.Read:
  """Returns `read`, but only of the seeds that a preset trains."""

  def read_few(library: data.Library, experiment: str) -> pd.DataFrame:
    frame = read(library, experiment)
    if frame.empty:
      return frame
    seeds = {
        seed
        for preset in frame['preset'].unique()
        for run in reference.described_runs(experiment, preset)
        for seed in run.config['training']['seeds']
    }
    return frame[frame['seed'].isin(seeds)]

  return read_few


def _levels(
    library: data.Library,
    experiment: str,
    task_support: str,
    metric: str,
    *conditions: str,
) -> str:
  """Returns '0.82, 0.81, ANIL 0.68, MAML 0.65', means at the last step.

  The first two are of the linear and the nonlinear hypernetwork.

  They are over the seeds that all models have. Of a model of several widths,
  the one with the best mean on OOD tasks counts.

  Args:
    library: the finished runs.
    experiment: which ones.
    task_support: of the runs.
    metric: 'accuracy', ...
    *conditions: 'split=test' in place of OOD tasks; 'field=integer' for some of
      the runs only.
  """
  frame = library.values(experiment)
  fields = dict(condition.split('=') for condition in conditions)
  split = fields.pop('split', 'ood')
  cell: dict[str, Any] = {k: int(value) for k, value in fields.items()}
  cell[students.SUPPORT] = task_support
  means = {
      model: students.best_width(frame, model, cell, metric, split)
      for model in (*style.HYPERNETWORKS, *style.MONOLITHIC)
  }
  shared = pd.DataFrame(means).dropna(axis='columns', how='all').dropna()
  labels = {m: f'{style.MODEL_NAMES[m]} ' for m in style.MONOLITHIC}
  return ', '.join(
      f'{labels.get(str(model), "")}{mean:.2f}'
      for model, mean in shared.mean().items()
  )


def _flag(experiment: str, preset: str = '') -> str:
  if not reference.described_runs(experiment, 'laptop'):
    return 'none: constructed'
  return f'`{sweeps.config_flag(experiment, preset or "laptop")}`'


def _cost(
    library: data.Library,
    experiment: str,
    seen: set[str],
    preset: str = 'laptop',
) -> str:
  """Returns the time of the bundled runs; adds the experiment to `seen`."""
  described = sweeps.described_conditions(experiment, preset)
  if experiment in seen or not described:
    return 'as above' if described else ''
  seen.add(experiment)
  runs = library.values(experiment, preset).drop_duplicates('run_id')
  runs = runs[runs['condition'].isin(described)]
  if runs.empty:
    return 'not run'
  number = runs['condition'].nunique()
  share = (
      '' if number == len(described) else f', {number} of {len(described)} runs'
  )
  if runs['wall_s'].isna().any():
    return f'not timed{share}'
  minutes = f'{runs["wall_s"].sum() / 60:.0f} min'
  if runs['cpu_s'].notna().all():
    minutes += f' (CPU time {runs["cpu_s"].sum() / 60:.0f})'
  return f'{minutes}{share}'


if __name__ == '__main__':
  script.run(main)

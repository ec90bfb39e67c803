"""Writes the tables of results on pages.

  python figures/readme.py

README.md has a row per figure of the paper, docs/results.md a row per claim of
the paper, docs/learners.md and every study's README.md those of their own,
docs/hyperteacher.md Figure 3B on the published problem, docs/verdicts.md the
verdicts that the seeds of the presets do not reach and the claims that are not
followed over training. All depend on the bundled results alone, so they are the
same on all machines; a test compares them.
"""

from collections.abc import Sequence
import dataclasses
import functools
import pathlib
import textwrap

import pandas as pd

from modular_hyperteacher import files
from modular_hyperteacher.cli import script
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.figures.extensions import over_training
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.judging import written
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import agreement
from modular_hyperteacher.figures.paper import fig3b
from modular_hyperteacher.figures.plotting import tables
from modular_hyperteacher.figures.report import overview

_ROOT = pathlib.Path(__file__).resolve().parents[1]
README = _ROOT / 'README.md'
RESULTS = _ROOT / 'docs' / 'results.md'
VERDICTS = _ROOT / 'docs' / 'verdicts.md'
LEARNERS = _ROOT / 'docs' / 'learners.md'
HYPERTEACHER = _ROOT / 'docs' / 'hyperteacher.md'


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

  Raises:
    ValueError: if a page lacks the markers of its table.
  """
  judged = list(zip(claims.known(), entries, strict=True))

  def of(some: Sequence[verdicts.Claim]) -> list[overview.Judged]:
    return [(claim, entry) for claim, entry in judged if claim in some]

  total, rule = (
      textwrap.fill(text, 118, break_on_hyphens=False)
      for text in (overview.summarise(judged), written.RULE)
  )
  counted = f'Tables A2 to A8: {". ".join(agreement.summarise(library))}.\n'
  paper = [e for e in plugins.experiments() if plugins.config_of(e).is_paper]
  compared = published_table(library, paper)
  tables_of = {
      README: {'figures': f'{figure_table(library, judged)}\n{total}\n'},
      RESULTS: {
          'claims': (
              f'{claim_table(library, of(claims.PAPER))}\n{total}\n\n{rule}\n'
          ),
          'published': '\n'.join(filter(None, (counted, compared))),
      },
      VERDICTS: {
          'seeds': seeds_table(library, entries),
          'one point': one_point_table(library),
      },
      HYPERTEACHER: {
          'desktop': tables.to_markdown(fig3b.desktop_table(library))
      },
      LEARNERS: {
          'claims': claim_table(library, of(claims.BEYOND)),
          'learners': tables.to_markdown(learners.table(library)),
      },
  }
  for study in plugins.studies():
    page = study.folder.resolve() / 'README.md'
    if page.is_relative_to(_ROOT):
      tables_of[page] = {
          'claims': claim_table(library, of(plugins.resolve(study.claims)))
      }
      if rows := published_table(library, study.configs):
        tables_of[page]['published'] = rows
  return {
      path: tables.fill(path.read_text('utf-8'), of_page)
      for path, of_page in tables_of.items()
  }


def figure_table(
    library: data.Library, judged: Sequence[overview.Judged]
) -> str:
  """Returns the README's table: a row per figure or table of the paper."""
  rows = []
  for artefact, finding in overview.FINDINGS.items():
    of_artefact = [j for j in judged if j[0].artefact == artefact]
    # Tables A2 to A8 make no claim.
    verdict = _verdict(of_artefact) or agreement.summarise(library)[0]
    trained = [(c.experiment, e['preset'] or '') for c, e in of_artefact]
    flags = [_flag(*one) for one in trained or [(agreement.EXPERIMENT, '')]]
    rows.append({
        'figure': artefact,
        'the paper': finding['published'],
        'here': overview.found_here(artefact, library, of_artefact),
        'verdict': f'[{verdict}](docs/{finding["page"]})',
        'trained by': ', '.join(dict.fromkeys(flags)),
    })
  return tables.to_markdown(pd.DataFrame(rows))


def _verdict(judged: Sequence[overview.Judged]) -> str:
  """Returns 'A', or 'A (ID), B (ID)'; then the same for claims with Adam."""
  adam = '-adam'
  main_claims = [j for j in judged if not j[0].id.endswith(adam)]
  named = _name_verdicts(main_claims)
  others = _name_verdicts([j for j in judged if j not in main_claims], adam)
  return f'{named}; Adam: {others}' if others not in ('', named) else named


def _name_verdicts(judged: Sequence[overview.Judged], suffix: str = '') -> str:
  ids: dict[str, list[str]] = {}
  for claim, entry in judged:
    ids.setdefault(entry['verdict'], []).append(claim.id.removesuffix(suffix))
  return ', '.join(
      f'{verdict} ({", ".join(of)})' if len(ids) > 1 else verdict
      for verdict, of in ids.items()
  )


def published_table(library: data.Library, experiments: Sequence[str]) -> str:
  """Returns a row per published number with a finished run; '' without any."""
  rows = list(agreement.compared_rows(library, experiments))
  return tables.to_markdown(pd.DataFrame(rows)) if rows else ''


def claim_table(
    library: data.Library, judged: Sequence[overview.Judged]
) -> str:
  """Returns a row per claim."""
  rows, seen = [], {}
  for claim, entry in judged:
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
        'trained by': _flag(claim.experiment, scale),
        'cost': _cost(library, claim, seen, scale or 'laptop'),
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
      {'claims': ', '.join(of_experiment), 'trained by': _flag(experiment)}
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


def _flag(experiment: str, preset: str = '') -> str:
  if not reference.described_runs(experiment, 'laptop'):
    return 'nothing to train'
  return f'`{sweeps.config_flag(experiment, preset or "laptop")}`'


def _cost(
    library: data.Library,
    claim: verdicts.Claim,
    seen: dict[tuple[str, str], str],
    preset: str,
) -> str:
  """Returns the bundled runs' time; `seen` has the claims whose rows say it."""
  experiment = claim.experiment
  described = sweeps.described_conditions(experiment, preset)
  if not described:
    return ''
  if (first := seen.setdefault((experiment, preset), claim.id)) != claim.id:
    return f'as {first}'
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

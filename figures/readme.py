"""Writes the tables of verdicts in README.md and docs/results.md.

  python figures/readme.py

README.md has a row per figure of the paper, docs/results.md a row per claim.
Both depend on the bundled results alone, so they are the same on all machines;
a test compares them.
"""

from collections.abc import Iterator, Mapping
import pathlib
import textwrap

from figures import claims
from figures import cli
from figures import registry
from figures.claims import verdicts
from figures.library import data
from figures.library import reference
from figures.plotting import tables
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.profiling import markdown
from modular_hyperteacher.runs import run_folder

_ROOT = pathlib.Path(__file__).resolve().parents[1]
README = _ROOT / 'README.md'
RESULTS = _ROOT / 'docs' / 'results.md'

# Part of the paper -> what was found at laptop scale. '{3B-1}' stands for the
# weakest effect of that claim, with its standard error.
_FINDINGS = {
    'Figure 2C': (
        'Converged inference: module alignment is higher with connected'
        ' support, by {2C-c} (continuous) and {2C-d} (discrete) or more. Adam'
        ' stopped early: not higher.'
    ),
    'Figure 2D': (
        'Converged inference: alignment hardly depends on student size. Adam'
        ' stopped early: it rises with modules and falls with width.'
    ),
    'Table A1': (
        'Weight decay changes alignment by less than 0.01, with converged'
        ' inference (0.99) and without (0.81).'
    ),
    'Section 3.2': (
        'Connected support: students without training error fit new'
        ' combinations nearly as well. Disconnected: a share of {TH-1-d} does'
        ' not.'
    ),
    'Appendix A.3': (
        'Without any one condition of Theorem 1, some student without training'
        ' error has a relative OOD error of {TH-2} or more.'
    ),
    'Figure 3B': (
        'Hypernetworks beat ANIL and MAML on new combinations by {3B-1} or'
        ' more; with a module held out they fall behind by {3B-2} or more.'
    ),
    'Figure 3C': (
        'Modules can be decoded linearly; holding a module out lowers R² by'
        ' {3C} or more.'
    ),
    'Figure 3D': 'Connected support raises R² by {3D} or more.',
    'Figure 3E': (
        'Combining modules in training (K > 1) raises OOD accuracy by {3E} or'
        ' more.'
    ),
    'Figure 3F': (
        'OOD accuracy rises with student size and does not fall again, up to 8'
        ' times the width and 16 times the modules.'
    ),
    'Section 4.1': (
        'Combining more modules than training did costs the nonlinear'
        ' hypernetwork 0.111 ± 0.036 OOD accuracy, the linear one {TXT-1}.'
    ),
    'Figure A3': (
        'The training tasks needed for an OOD accuracy of 0.7 do not increase'
        ' from 4 to 10 modules.'
    ),
    'Figure A4': 'Halving the shots costs {A4} OOD accuracy or more.',
    'Figure A5': (
        'Half of the combinations can be held out at almost no cost with ten'
        ' modules, not with six.'
    ),
    'Figure A6': (
        'Over M and K, decodability correlates with OOD accuracy, by {A6} or'
        ' more.'
    ),
    'Tables A2-A8': 'Compared at the published scale only.',
    'Figure 4B': (
        'After short training, connected support lowers the OOD loss by {4B} or'
        ' more.'
    ),
    'Figure 4C': (
        'After short training, ANIL has the lowest OOD loss. Holding a'
        ' preference out raises that of hypernetworks by 0.08 ± 0.06 (linear)'
        ' and 0.04 ± 0.02.'
    ),
    'Figure 4E': (
        'Hypernetworks beat ANIL and MAML on new goals by {4E} or more.'
    ),
    'Figure 4F': (
        'Holding a quadrant out costs hypernetworks more OOD accuracy than ANIL'
        ' and MAML, by {4F} or more.'
    ),
    'Figure A8': (
        'Larger students do as well, except that one linear hypernetwork seed'
        ' of three diverges.'
    ),
    'Figure A9': (
        'The same as 4E and 4F for demonstrations predicted without a mistake,'
        ' by {A9} or more.'
    ),
    'Figure A10': (
        'Size costs nothing; more modules raise OOD accuracy by up to 0.08.'
    ),
}


def main() -> None:
  """Replaces the tables on both pages."""
  library = data.Library(data.BUNDLED / 'nothing')
  entries = claims.evaluate(library)
  for path, text in pages(library, entries).items():
    run_folder.write_atomically(path, text)
    print(path)


def pages(
    library: data.Library, entries: list[verdicts.Entry]
) -> dict[pathlib.Path, str]:
  """Returns path -> text of both pages, with current tables.

  Args:
    library: the finished runs.
    entries: one per claim, from `claims.evaluate`.

  Raises:
    ValueError: if a page lacks the markers of its table.
  """
  figures = figure_table(entries)
  all_claims = claim_table(library, entries)
  rule = textwrap.fill(verdicts.RULE, 118)
  return {
      README: markdown.fill(README.read_text(), {'figures': figures}),
      RESULTS: markdown.fill(
          RESULTS.read_text(), {'claims': f'{all_claims}\n{rule}\n'}
      ),
  }


def figure_table(entries: list[verdicts.Entry]) -> str:
  """Returns the README's table: a row per figure or table of the paper."""
  effects = {entry['id']: _effect(entry) for entry in entries}
  rows = []
  for artefact, finding in _FINDINGS.items():
    of_artefact = [
        (claim, entry)
        for claim, entry in zip(claims.CLAIMS, entries, strict=True)
        if claim.artefact == artefact
    ]
    ids: dict[str, list[str]] = {}
    for _, entry in of_artefact:
      ids.setdefault(entry['verdict'], []).append(entry['id'])
    verdict = '; '.join(
        f'{verdict} ({", ".join(names)})' if len(ids) > 1 else verdict
        for verdict, names in ids.items()
    )
    rows.append({
        'figure': artefact,
        'what was found': finding.format_map(effects),
        'verdict': verdict,
        'command: `… main`': _flag(of_artefact[0][0].experiment),
    })
  return _table(rows)


def claim_table(library: data.Library, entries: list[verdicts.Entry]) -> str:
  """Returns a row per claim, and per experiment without claims."""
  rows, seen = [], set()
  for claim, entry in zip(claims.CLAIMS, entries, strict=True):
    rows.append({
        'claim': f'{claim.id} ({claim.artefact})',
        'what is claimed': claim.sentence,
        'verdict': entry['verdict'],
        'weakest effect': _effect(entry),
        'scale': entry['preset'] or '',
        'command: `… main`': _flag(claim.experiment),
        'laptop cost': _cost(library, claim.experiment, seen),
    })
  for name, figure in registry.FIGURES.items():
    for experiment in figure.experiments:
      if experiment not in seen:
        rows.append({
            'claim': f'none ({name})',
            'what is claimed': figure.title.replace('Beyond the paper: ', ''),
            **dict.fromkeys(('verdict', 'weakest effect', 'scale'), ''),
            'command: `… main`': _flag(experiment),
            'laptop cost': _cost(library, experiment, seen),
        })
  return _table(rows)


def unplaced() -> Iterator[verdicts.Claim]:
  """Yields claims that the README's table does not show."""
  return (c for c in claims.CLAIMS if c.artefact not in _FINDINGS)


def _table(rows: list[Mapping[str, str]]) -> str:
  return markdown.table({name: [r[name] for r in rows] for name in rows[0]})


def _effect(entry: verdicts.Entry) -> str:
  return tables.with_error(entry['effect'], entry['standard_error'])


def _flag(experiment: str) -> str:
  if not reference.described_runs(experiment, 'laptop'):
    return 'none: constructed'
  return f'`--config=configs/{experiment}.py`'


def _cost(library: data.Library, experiment: str, seen: set[str]) -> str:
  """Returns the time of the bundled runs; adds the experiment to `seen`."""
  described = {
      sweeps.digest(run.run_id)
      for run in reference.described_runs(experiment, 'laptop')
  }
  if experiment in seen or not described:
    return 'as above' if described else ''
  seen.add(experiment)
  frame = library.every_preset(experiment)
  runs = data.rows(frame, {'preset': 'laptop'}).drop_duplicates('run_id')
  runs = runs[[sweeps.digest(run_id) in described for run_id in runs['run_id']]]
  if runs.empty:
    return 'not run'
  share = (
      ''
      if len(runs) == len(described)
      else (f', {len(runs)} of {len(described)} runs')
  )
  if runs['wall_s'].isna().any():
    return f'not timed{share}'
  minutes = f'{runs["wall_s"].sum() / 60:.0f} min'
  if runs['cpu_s'].notna().all():
    minutes += f' ({runs["cpu_s"].sum() / 60:.0f} of a core)'
  return f'{minutes}{share}'


if __name__ == '__main__':
  cli.run(main)

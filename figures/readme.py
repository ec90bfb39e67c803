"""Writes the README's table of claims, verdicts and costs.

  python figures/readme.py

The table depends on the bundled results alone, so it is the same on all
machines; a test compares it. Costs at laptop scale are the times of the bundled
runs. Costs at the published scale are a lower bound on FLOPs
(`modular_hyperteacher/profiling/flops.py`), and its time at 1 TFLOP/s.
"""

import pathlib

import pandas as pd

from figures import claims
from figures import cli
from figures import registry
from figures.claims import verdicts
from figures.library import data
from figures.library import reference
from figures.plotting import tables
from modular_hyperteacher import errors
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.profiling import flops
from modular_hyperteacher.runs import run_folder

PATH = pathlib.Path(__file__).resolve().parents[1] / 'README.md'
_BEGIN = '<!-- table: begin; python figures/readme.py writes it -->\n'
_END = '<!-- table: end -->\n'
_HEAD = (
    *('claim', 'what is claimed', 'command: `… main`', 'verdict'),
    *('laptop cost', 'paper scale, estimated'),
)


def main() -> None:
  """Replaces the table in the README."""
  run_folder.write_atomically(PATH, replace_table(PATH.read_text()))
  print(PATH)


def replace_table(text: str) -> str:
  """Returns a README's text with the current table.

  Raises:
    UserError: if the text lacks the lines that enclose the table.
  """
  before, begin, rest = text.partition(_BEGIN)
  _, end, after = rest.partition(_END)
  if not begin or not end:
    raise errors.UserError(f'{PATH} lacks the lines {_BEGIN} and {_END}.')
  return before + begin + make_table() + end + after


def make_table() -> str:
  """Returns the table: a row per claim, and per experiment without claims."""
  library = data.Library(data.BUNDLED / 'nothing')
  rows, seen = [], set()
  for claim, entry in zip(claims.CLAIMS, claims.evaluate(library), strict=True):
    cells = _config_verdict_costs(
        library, claim.experiment, _verdict(entry), seen
    )
    rows.append((f'{claim.id} ({claim.artefact})', claim.sentence, *cells))
  for name, figure in registry.FIGURES.items():
    for experiment in figure.experiments:
      if experiment not in seen:
        shown = figure.title.replace('Beyond the paper: ', '')
        cells = _config_verdict_costs(library, experiment, '', seen)
        rows.append((f'none ({name})', shown, *cells))
  return tables.to_markdown(pd.DataFrame(rows, columns=list(_HEAD)))


def _config_verdict_costs(
    library: data.Library, experiment: str, verdict: str, seen: set[str]
) -> tuple[str, str, str, str]:
  """Returns the last cells of a row; only the first of an experiment has costs.

  Args:
    library: the finished runs.
    experiment: of the row.
    verdict: of the row.
    seen: experiments of rows above; adds this one.
  """
  if not reference.described_runs(experiment, 'laptop'):
    return 'none: constructed', verdict, '', ''
  config = f'`--config=configs/{experiment}.py`'
  if experiment in seen:
    return config, verdict, 'same runs', 'same runs'
  seen.add(experiment)
  return config, verdict, _laptop(library, experiment), _paper(experiment)


def _verdict(entry: verdicts.Entry) -> str:
  effect = tables.with_error(entry['effect'], entry['standard_error'])
  if entry['verdict'] == 'NOT RUN':
    return 'NOT RUN'
  return f'{entry["verdict"]}, {effect} ({entry["preset"]})'


def _laptop(library: data.Library, experiment: str) -> str:
  """Returns the time of the bundled runs, and how many of all these are."""
  frame = library.every_preset(experiment)
  runs = data.rows(frame, {'preset': 'laptop'}).drop_duplicates('run_id')
  described = {
      sweeps.digest(run.run_id)
      for run in reference.described_runs(experiment, 'laptop')
  }
  runs = runs[[sweeps.digest(run_id) in described for run_id in runs['run_id']]]
  if runs.empty:
    return 'not run'
  all_runs = len(runs) == len(described)
  number = 'all' if all_runs else f'{len(runs)} of {len(described)}'
  if runs['wall_s'].isna().any():
    return f'not timed, {number} runs'
  minutes = f'{runs["wall_s"].sum() / 60:.0f} min'
  if runs['cpu_s'].notna().all():
    minutes += f' ({runs["cpu_s"].sum() / 60:.0f} of a core)'
  return f'{minutes}, {number} runs'


def _paper(experiment: str) -> str:
  """Returns a lower bound on the FLOPs of all runs at the published scale."""
  operations = sum(
      run.config['training']['num_outer_steps']
      * len(run.config['training']['seeds'])
      * flops.outer_step(run.config)
      for run in reference.described_runs(experiment, 'paper')
  )
  return f'{operations:.1e} FLOP, {_hours(operations)} at 1 TFLOP/s'


def _hours(operations: float) -> str:
  hours = operations / 3.6e15
  return f'{hours:,.0f} h' if hours >= 10 else f'{hours:.1g} h'


if __name__ == '__main__':
  cli.run(main)

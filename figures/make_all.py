"""Draws all figures and tables and judges all claims, from finished runs.

  python figures/make_all.py
  python figures/make_all.py --only=fig3b --results=results --format=html,pdf

Reads the user's own results if there are any, else the bundled ones. Writes,
per figure, an interactive page, static images if there is a browser to draw
them, and the plotted numbers. Also writes the verdicts on all claims, and
`report.html`, one page with everything. Trains nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
import pathlib

from absl import flags
import pandas as pd
import plotly.graph_objects as go

from figures import claims
from figures import cli
from figures import registry
from figures.claims import verdicts
from figures.extensions import predictions
from figures.library import data
from figures.plotting import images
from figures.plotting import tables
from figures.report import page as report
from modular_hyperteacher import errors

_ONLY = flags.DEFINE_list('only', [], 'Figures to draw; all by default.')
_RESULTS = flags.DEFINE_string('results', 'results', 'Folder of results.')
_PREDICTIONS = flags.DEFINE_string(
    'predictions',
    None,
    'Folder of .npz files for python -m modular_hyperteacher.worlds score, to'
    ' draw beside the built-in models.',
)
_OUTPUT = flags.DEFINE_string('output', 'figures/output', 'Folder to write to.')
_FORMAT = flags.DEFINE_list(
    'format', ['html', 'svg', 'png'], 'Of html, svg, png, pdf; html always.'
)


def main() -> None:
  """Writes everything, and prints the files, their origin and the verdicts."""
  names = _choose('only', _ONLY.value, list(registry.FIGURES))
  names = names or list(registry.FIGURES)
  if _PREDICTIONS.value is not None:
    found = predictions.read(pathlib.Path(_PREDICTIONS.value))
    added = {name: registry.Figure(*entry) for name, entry in found.items()}
    registry.add_section(predictions.HEADING, added)
    names += added
  formats = _choose('format', _FORMAT.value, ['html', *images.FORMATS])
  formats = [name for name in formats if name != 'html']
  root = pathlib.Path(_RESULTS.value)
  if flags.FLAGS['results'].present and not root.is_dir():
    raise errors.UserError(
        f"--results is '{root}'; it must be a folder that exists."
    )
  library = data.Library(root)
  _print_origins(names, library)
  output = pathlib.Path(_OUTPUT.value)
  try:
    output.mkdir(parents=True, exist_ok=True)
    images.write_script(output)
    drawn = {name: _make(name, library, output) for name in names}
    charts = {name: d.figure for name, d in drawn.items() if d.figure}
    obstacle = images.export(charts, formats, output)
    entries = claims.evaluate(library)
    _write(output, verdicts.write(claims.CLAIMS, entries))
    page = report.make(drawn, claims.CLAIMS, entries, library)
    _write(output, {'report.html': page})
  except OSError as error:
    raise errors.UserError(
        f'--output: cannot write to {output} ({error.strerror}).'
    ) from error

  for name in names:
    static = [] if obstacle or name not in charts else formats
    endings = ['html', *static, 'csv', 'md']
    print(f'{output / name}.{{{",".join(endings)}}}')
  if obstacle:
    print(obstacle)
  print(f'\nAll on one page: {output / "report.html"}')
  print(f'\nClaims, in {output}/claims.json and claims.md:')
  for entry in entries:
    print(_line(entry))


def _make(
    name: str, library: data.Library, output: pathlib.Path
) -> report.Drawn:
  """Draws one figure and writes its page and its table."""
  figure, table = registry.FIGURES[name].make(library)
  for image_format in images.FORMATS:  # Images of earlier results.
    (output / f'{name}.{image_format}').unlink(missing_ok=True)
  _write(
      output,
      {
          f'{name}.html': _page(name, figure, table),
          f'{name}.csv': table.to_csv(index=False),
          f'{name}.md': tables.to_markdown(table),
      },
  )
  return report.Drawn(figure, table)


def _page(name: str, figure: go.Figure | None, table: pd.DataFrame) -> str:
  if figure is None:
    return tables.to_page(registry.FIGURES[name].title, table)
  return images.to_page(figure, name)


def _print_origins(names: Iterable[str], library: data.Library) -> None:
  """Prints where results come from, or how to train some."""
  read = [e for name in names for e in registry.FIGURES[name].experiments]
  for experiment in dict.fromkeys(read):
    frame = library.values(experiment)
    if frame.empty:
      print(
          f'{experiment}: no finished run; train with python -m'
          f' modular_hyperteacher.main --config=configs/{experiment}.py'
      )
    else:
      print(
          f'{experiment}: {frame["source"].iloc[0]} results, preset'
          f' {frame["preset"].iloc[0]}, {frame["run_id"].nunique()} runs'
      )
  for run in library.stale():
    print(f'stale: {run} is bundled, but no current config describes it')


def _line(entry: verdicts.Entry) -> str:
  text = f'{entry["id"]:6} {entry["verdict"]:8}'
  if entry['effect'] is not None:
    effect = tables.with_error(entry['effect'], entry['standard_error'])
    text += f'{effect} ({entry["preset"]}, seeds: {entry["num_seeds"]}) '
  return f'{text}{entry["note"]}'


def _write(folder: pathlib.Path, files: Mapping[str, str]) -> None:
  for name, text in files.items():
    (folder / name).write_text(text)


def _choose(flag: str, chosen: list[str], allowed: Sequence[str]) -> list[str]:
  for name in chosen:
    if name not in allowed:
      raise errors.UserError(
          f"--{flag} has '{name}'; choose from {', '.join(allowed)}."
      )
  return chosen


if __name__ == '__main__':
  cli.run(main)

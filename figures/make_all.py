"""Draws all figures and tables and evaluates all claims, from finished runs.

  python figures/make_all.py
  python figures/make_all.py --only=fig3b --results=results --format=html,pdf
  python figures/make_all.py --site=DIR

For each experiment, reads your own results if there are any, else the bundled
ones; trains nothing. Writes an interactive page and the plotted numbers of each
figure, static images if kaleido and Chrome or Chromium are installed, the
verdicts on all claims, and `report.html`, one page with everything. It takes a
minute.

`--site` writes a folder to publish, for example on GitHub Pages: `index.html`
in place of `report.html`, and the documentation as web pages.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import process
import contextlib
import ctypes
import functools
import gc
import multiprocessing
import os
import pathlib
import signal
import sys
import threading

from absl import flags

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.cli import script
from modular_hyperteacher.devices import compilation_options
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.extensions import predictions
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.judging import written
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import images
from modular_hyperteacher.figures.plotting import tables
from modular_hyperteacher.figures.report import page as report
from modular_hyperteacher.figures.report import site

# From linux/prctl.h.
_PR_SET_PDEATHSIG = 1


def define_flags() -> None:
  """Defines the flags when the command runs, not at import."""
  flags.DEFINE_list(
      'only',
      [],
      'Figures to draw, such as fig3b,fig4e; the report then has only these.'
      ' Default: all.',
  )
  command_line.define_results_flag()
  flags.DEFINE_string(
      'predictions',
      None,
      'Folder with predictions of your own models, to draw beside the built-in'
      ' ones: .npz files as in docs/library.md.',
  )
  flags.DEFINE_string('output', 'figures/output', 'Folder to write to.')
  flags.DEFINE_string(
      'site', '', 'Write a website to this folder, in place of --output.'
  )
  flags.DEFINE_list(
      'format',
      ['html', 'svg', 'png'],
      'Images to write per figure, besides html: svg, png or pdf.',
  )


def main() -> None:
  """Writes everything, and prints the files, their origin and the verdicts."""
  # Figures are large trees that stay: looking for garbage costs a tenth of the
  # time and finds little.
  gc.set_threshold(50_000)
  if flags.FLAGS.predictions is None:
    # The programs that draw single tasks run once. Compiled like this, these
    # figures take 8 s of CPU time in place of 19 s; rounding may differ. Must
    # happen before JAX starts its backend.
    given = os.environ.get('XLA_FLAGS', '')
    os.environ['XLA_FLAGS'] = f'{compilation_options.as_flags()} {given}'
  for name in flags.FLAGS.only:
    errors.require_choice('--only', name, registry.figures())
  for name in flags.FLAGS.format:
    errors.require_choice('--format', name, ['html', *images.FORMATS])
  names = flags.FLAGS.only or list(registry.figures())
  if flags.FLAGS.predictions is not None:
    folder = files.locate(flags.FLAGS.predictions, '--predictions')
    added = predictions.read(folder)
    registry.add_section(predictions.HEADING, added)
    names += added
  root = command_line.read_root()
  errors.require(
      root.is_dir() or not flags.FLAGS['results'].present,
      '--results',
      f"'{root}'",
      'it must be a folder that exists',
  )
  flag = '--site' if flags.FLAGS.site else '--output'
  output = files.locate(flags.FLAGS.site or flags.FLAGS.output, flag)
  _print_origins(names, _library(root))
  with files.writing_to(output, flag):
    output.mkdir(parents=True, exist_ok=True)
    _write_all(names, root, output)


def _write_all(
    names: Sequence[str], root: pathlib.Path, output: pathlib.Path
) -> None:
  home = 'index.html' if flags.FLAGS.site else 'report.html'
  if flags.FLAGS.site:
    site.write_docs(output, home)
  images.write_script(output)
  drawn, entries = _draw(names, root, output)
  charts = {name: d.figure for name, d in drawn.items() if d.figure}
  formats = [name for name in flags.FLAGS.format if name != 'html']
  obstacle = images.export(charts, formats, output)
  _write(output, written.write(entries))
  judged = list(zip(claims.known(), entries, strict=True))
  whole = report.Report(drawn, judged, _library(root))
  for name in names:
    has_images = name in charts and not obstacle
    others = ['csv', 'md', *(formats if has_images else ())]
    _write(output, {f'{name}.html': whole.figure_page(name, home, others)})
    print(f'{output / name}.{{{",".join(["html", *others])}}}')
  if flags.FLAGS.site:
    links = [('docs/index.html', 'Documentation')]
    _write(output, {home: whole.page(packed=False, links=links)})
  else:
    _write(output, {home: whole.page()})
  print()
  for claim, entry in judged:
    if claim.figure in names:
      print(f'{entry["id"]:12}{entry["verdict"]:14}{entry["sentence"]}')
  print(f'Numbers of all claims: {output}/claims.json and claims.md')
  if obstacle:
    print(f'\n{obstacle}')
  print(f'\nAll on one page: {output / home}')


@functools.cache
def _library(root: pathlib.Path) -> data.Library:
  """Reads all results, once: a fork of this process has them already."""
  return data.Library(root)


def _draw(
    names: Sequence[str], root: pathlib.Path, output: pathlib.Path
) -> tuple[dict[str, report.Drawn], list[verdicts.Entry]]:
  """Draws figures and evaluates all claims, in two processes if possible.

  A second process starts with the first figure, this one with the last, until
  they meet. So this one draws effects over training, which evaluate claims.
  """
  library = _library(root)
  # Only on Linux is a fork safe, and only before JAX starts threads, as it does
  # to score predictions.
  if sys.platform != 'linux' or flags.FLAGS.predictions is not None:
    drawn = {name: _make(name, root, output) for name in names}
    return drawn, claims.evaluate(library)
  fork = multiprocessing.get_context('fork')
  sys.stdout.flush()  # Else the fork would print what is buffered, too.
  with (
      _told_if_killed(),
      futures.ProcessPoolExecutor(1, fork, _end_with_parent) as pool,
  ):
    waiting = {name: pool.submit(_make, name, root, output) for name in names}
    try:
      drawn = {
          name: _make(name, root, output)
          for name in reversed(names)
          if waiting[name].cancel()
      }
      entries = claims.evaluate(library)
      return {n: drawn.get(n) or waiting[n].result() for n in names}, entries
    finally:
      pool.shutdown(cancel_futures=True)  # After an error, do not go on.


def _end_with_parent() -> None:
  """Has Linux end this process when its parent does, even by SIGKILL."""
  ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@contextlib.contextmanager
def _told_if_killed() -> Iterator[None]:
  hook = threading.excepthook
  # In Python 3.11, a thread of the pool fails on tasks that were cancelled.
  threading.excepthook = lambda _: None
  try:
    yield
  except process.BrokenProcessPool as error:
    raise errors.MachineError(
        'the process that draws half of the figures was killed, perhaps for'
        ' lack of memory; try again.'
    ) from error
  finally:
    threading.excepthook = hook


def _make(name: str, root: pathlib.Path, output: pathlib.Path) -> report.Drawn:
  figure, table = registry.figures()[name].make(_library(root))
  for image_format in images.FORMATS:  # Images of earlier results.
    (output / f'{name}.{image_format}').unlink(missing_ok=True)
  _write(
      output,
      {
          f'{name}.csv': table.to_csv(index=False),
          f'{name}.md': tables.to_markdown(table),
      },
  )
  return report.Drawn(figure, table)


def _print_origins(names: Iterable[str], library: data.Library) -> None:
  """Prints where results come from, or how to train some."""
  figures = [registry.figures()[name] for name in names]
  read = [(e, figure.preset) for figure in figures for e in figure.experiments]
  for experiment, preset in dict.fromkeys(read):
    frame = library.values(experiment, preset)
    if frame.empty:
      flag = sweeps.config_flag(experiment, preset or 'laptop')
      print(
          f'{experiment}: no finished run; train with python -m'
          f' modular_hyperteacher.main {flag}'
      )
    else:
      print(
          f'{experiment}: {frame["source"].iloc[0]} results, preset'
          f' {frame["preset"].iloc[0]}, {frame["run_id"].nunique()} runs'
      )
  for run in library.stale():
    print(f'stale: {run} is bundled, but no current config describes it')


def _write(folder: pathlib.Path, texts: Mapping[str, str]) -> None:
  for name, text in texts.items():
    (folder / name).write_text(text, 'utf-8')


if __name__ == '__main__':
  define_flags()
  script.run(main)

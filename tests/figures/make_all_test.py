"""The scripts of `figures/`, from the command line."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher import pretrained
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.pretrained import weights
from tests.helpers import commands
from tests.helpers import forks
from tests.helpers import made_up


def run_script(
    name: str,
    *arguments: str,
    browser: str | None = '/nonexistent',
    **variables: str,
) -> subprocess.CompletedProcess[str]:
  if browser is not None:
    variables['BROWSER_PATH'] = browser
  script = f'figures/{name}.py'
  return commands.python(script, *arguments, cwd=commands.ROOT, **variables)


def test_make_all_from_end_to_end(tmp_path: pathlib.Path) -> None:
  made_up.write_runs(tmp_path / 'results', made_up.AS_CLAIMED)
  output = tmp_path / 'output'
  output.mkdir()
  (output / 'fig3b.png').write_text('an earlier image')
  run = run_script(
      'make_all',
      *('--only=fig3b', '--results=~/results', '--output=~/output'),
      HOME=str(tmp_path),
  )
  assert run.returncode == 0, run.stderr
  assert run.stdout.count('no static images') == 1
  assert 'own results, preset laptop, 8 runs' in run.stdout
  assert not (output / 'fig3b.png').exists()
  page = (output / 'fig3b.html').read_text()
  assert 'src="http' not in page  # Nothing is fetched: it works offline.
  assert (output / 'plotly.min.js').exists()
  assert len(list(output.glob('*.html'))) == 2
  assert len(pd.read_csv(output / 'fig3b.csv')) == 12
  assert (output / 'fig3b.md').read_text().startswith('| model |')
  assert 'All on one page' in run.stdout
  assert 'id="fig3b-plot"' in page
  assert 'id="fig3b-plot"' in (output / 'report.html').read_text()
  entries = json.loads((output / 'claims.json').read_text())
  verdict = {entry['id']: entry['verdict'] for entry in entries}
  assert (verdict['3B-1'], verdict['3B-2']) == ('SUPPORTED', 'SUPPORTED')
  assert set(entries[0]) == set(verdicts.Entry.__annotations__)
  assert '| 3B-1 | Figure 3B |' in (output / 'claims.md').read_text()


@pytest.mark.slow
def test_images_are_made_or_the_way_to_them_is_told(
    tmp_path: pathlib.Path,
) -> None:
  only, output = '--only=fig3b', f'--output={tmp_path}'
  run = run_script('make_all', '--format=png', only, output, browser=None)
  assert run.returncode == 0, run.stderr
  made = (tmp_path / 'fig3b.png').exists()
  assert made != ('no static images' in run.stdout)


_EXPORT = """
import pathlib, sys
import plotly.graph_objects as go
from modular_hyperteacher.figures.plotting import images
images._TIMEOUT_S = images._SECONDS_PER_IMAGE = images._CLOSE_S = 1
print(images.export({'a': go.Figure()}, ['png'], pathlib.Path(sys.argv[1])))
"""


@pytest.mark.slow
def test_a_browser_that_does_not_answer_is_ended(
    tmp_path: pathlib.Path,
) -> None:
  pytest.importorskip('kaleido')
  browser, started = tmp_path / 'browser', tmp_path / 'pid'
  browser.write_text(f'#!/bin/sh\necho $$ > {started}\nexec sleep 600\n')
  browser.chmod(0o700)
  run = subprocess.run(
      [sys.executable, '-c', _EXPORT, str(tmp_path)],
      env=os.environ | {'BROWSER_PATH': str(browser)},
      capture_output=True,
      text=True,
      check=True,
      timeout=120,  # Without an end, Python would wait for it.
  )
  assert 'no static images' in run.stdout
  with pytest.raises(ProcessLookupError):
    os.kill(int(started.read_text()), 0)


def _contents(folder: pathlib.Path) -> dict[str, tuple[str, str]]:
  """Returns run id -> values and curves of a bundle, as text."""
  finished, curves = bundles.read_whole(folder)
  found = {}
  for run_id in finished.runs:
    tables = [t[t['run_id'] == run_id] for t in (finished.values, curves)]
    found[run_id] = tuple(t.to_csv(index=False) for t in tables)
  return found


@pytest.mark.slow
def test_bundle_from_end_to_end(tmp_path: pathlib.Path) -> None:
  root = made_up.write_runs(
      tmp_path / 'results',
      made_up.AS_CLAIMED,
      seeds=(2020, 2021, 2022, 2023),
      spread=(-0.01, 0.0, 0.01, 0.02),
  )
  arguments = (f'--results={root}', f'--output={tmp_path / "small"}')
  run = run_script('bundle', *arguments, '--experiment=fig3b')
  assert run.returncode == 0, run.stderr
  assert (tmp_path / 'small/fig3b/laptop/results.csv.gz').exists()
  # Figure A4 shares the runs of 32 shots, here with fewer seeds: each seed of a
  # condition is bundled once.
  made_up.write_by_rule(root, 'fig_a4', lambda *_: 0.5)
  run = run_script('bundle', *arguments, '--experiment=fig_a4')
  assert run.returncode == 0, run.stderr
  assert run.stdout.count(f'left to {tmp_path / "small/fig3b/laptop"}') == 2
  folders = [tmp_path / 'small' / n / 'laptop' for n in ('fig3b', 'fig_a4')]
  held = [
      key
      for folder in folders
      for run in bundles.read(folder).runs.values()
      for key in run.keys
  ]
  assert len(set(held)) == len(held) > 0
  # A run that only Figure A4 still describes moves there, with its parameters;
  # one that is in both bundles stays there.
  own, rest = folders[1], folders[0]
  before = [_contents(folder) for folder in folders]
  moved, in_both, *_ = bundles.read(own).runs
  everything = bundles.read(own).runs.keys()
  bundles.write_bundle(own, rest, everything - {moved, in_both})
  bundles.write_bundle(tmp_path / 'nothing', own, {moved})
  params = {'bank': np.ones((1, 2))}
  name = pretrained.FOLDER
  weights.write(rest / name, moved, kind='last', seeds=[1], meta_params=params)
  nothing = (f'--results={tmp_path / "nothing"}', arguments[1])
  run = run_script('bundle', *nothing, '--experiment=fig3b')
  assert f'{moved}: moved to {own}' in run.stdout, run.stderr
  assert [_contents(folder) for folder in folders] == before
  assert list(weights.read_index(own / name)) == [moved]
  assert (own / name / f'{moved}.npz').exists()
  assert not list(rest.rglob('*.npz'))


def test_what_cannot_be_bundled_is_told(tmp_path: pathlib.Path) -> None:
  refused = {
      '--experiment=fig9': "--experiment is 'fig9'; choose one of bridges,",
      '--experiment=fig3b': '--results: there is no finished run in',
      '--experiment=fig3b --only=model=anil': (
          "--only is ['model=anil']; it selects parameters: give --parameters"
      ),
  }
  where = f'--results={tmp_path}', f'--output={tmp_path}/new'
  forks.assert_refused(
      tmp_path,
      [[*where, *arguments.split()] for arguments in refused],
      list(refused.values()),
      'figures.bundle',
  )


def test_a_run_with_the_seeds_of_others_replaces_them(
    tmp_path: pathlib.Path,
) -> None:
  small = tmp_path / 'small/fig3b/laptop'
  for seeds in ((2020, 2021), (2022,), (2023, 2024)):
    results = made_up.write_runs(
        tmp_path / str(len(list(tmp_path.iterdir()))),
        made_up.AS_CLAIMED,
        seeds=seeds,
        spread=(0.0,) * len(seeds),
    )
    bundles.write_bundle(results / 'fig3b/laptop', small)
  longer = made_up.write_runs(
      tmp_path / 'longer',
      {('anil', 'random'): 0.2},
      override={'training.num_outer_steps': 3001},
  )
  before = bundles.read(small).runs
  bundles.write_bundle(longer / 'fig3b/laptop', small)
  results = made_up.write_runs(
      tmp_path / 'results',
      {('maml', 'random'): 0.3},
      seeds=(2020, 2021, 2022, 2023),
      spread=(0.0,) * 4,
  )
  run = run_script(
      'bundle',
      *('--experiment=fig3b', f'--results={results}'),
      f'--output={tmp_path / "small"}',
  )
  assert run.returncode == 0, run.stderr
  after = bundles.read(small).runs
  gone = before.keys() - after.keys()
  seeds = [before[r].config['training']['seeds'] for r in sorted(gone)]
  assert sorted(seeds) == [[2020, 2021], [2022]]
  assert all(r.startswith('random-maml-') for r in gone)
  assert run.stdout.count('replaced, as its seeds were trained again') == 2
  assert run.stdout.count("deleted, as no bundle's config describes it") == 1
  (new,) = after.keys() - before.keys()
  assert after[new].config['training']['seeds'] == [2020, 2021, 2022, 2023]


def test_runs_of_an_unknown_config_stay_bundled(
    tmp_path: pathlib.Path,
) -> None:
  small = tmp_path / 'small/mine/laptop'
  for number, model in enumerate(('anil', 'maml')):
    one = {(model, 'random'): 0.5}
    root = made_up.write_runs(tmp_path / str(number), one)
    (root / 'fig3b').rename(root / 'mine')
    run = run_script(
        'bundle',
        *('--experiment=mine', f'--results={root}'),
        f'--output={tmp_path / "small"}',
    )
    assert run.returncode == 0, run.stderr
  assert len(bundles.read(small).runs) == 2


def test_parameters_stay_with_the_runs_that_they_gave(
    tmp_path: pathlib.Path,
) -> None:
  """Only those of runs that were trained again are out of date."""
  results, folder = tmp_path / 'results', tmp_path / 'small/fig3b/laptop'
  made_up.write_runs(results, made_up.AS_CLAIMED)
  bundles.write_bundle(results / 'fig3b/laptop', folder)
  parameters = folder / pretrained.FOLDER
  for run_id in bundles.read(folder).runs:
    params = {'bank': np.ones((1, 2))}
    weights.write(
        parameters, run_id, kind='last', seeds=[1], meta_params=params
    )
  before = weights.read_index(parameters)
  made_up.write_runs(results, {('maml', 'random'): 0.3})
  run = run_script(
      'bundle',
      *('--experiment=fig3b', '--results=~/results', '--output=~/small'),
      HOME=str(tmp_path),
  )
  assert run.returncode == 0, run.stderr
  after = weights.read_index(parameters)
  (lost,) = before.keys() - after.keys()
  assert lost.startswith('random-maml-') and len(after) == 7
  assert {path.stem for path in parameters.glob('*.npz')} == after.keys()
  assert f'parameters removed from {parameters}: {lost}\n' in run.stdout


_LONG = 'x' * 300
_REFUSED = {
    '--only=fig9': "--only is 'fig9'; choose one of summary",
    '--format=gif': "--format is 'gif'; choose one of html, svg, png,",
    '--results=/nowhere': "--results is '/nowhere'; it must be a folder",
    f'--results={_LONG}': f"--results is '{_LONG}', which cannot be a folder",
    '--onyl=fig3b': "there is no flag '--onyl'; see --help.",
    'fig3b': "unknown argument 'fig3b'; see --help.",
    '--output=': "--output is ''; name a",
}


def test_wrong_input_is_one_line_and_exit_code_2(
    tmp_path: pathlib.Path,
) -> None:
  output = tmp_path / 'output'
  forks.assert_refused(
      tmp_path,
      [[f'--output={output}', argument] for argument in _REFUSED],
      list(_REFUSED.values()),
      'figures.make_all',
  )
  assert not output.exists()


@pytest.mark.slow
@pytest.mark.parametrize('killed', ['child', 'parent'])
def test_two_processes_end_together(
    killed: str, tmp_path: pathlib.Path
) -> None:
  command = [sys.executable, 'figures/make_all.py', f'--output={tmp_path}']
  with subprocess.Popen(
      [*command, '--format=html'],
      cwd=made_up.ROOT,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
  ) as run:
    child = None
    while child is None:
      found = subprocess.run(
          ['pgrep', '-P', str(run.pid)], capture_output=True, check=False
      )
      child = int(found.stdout) if found.stdout else None
      time.sleep(0.1)
    os.kill(child if killed == 'child' else run.pid, signal.SIGKILL)
    if killed == 'parent':
      status = pathlib.Path(f'/proc/{child}/status')
      deadline = time.monotonic() + 30
      while status.exists() and 'State:\tZ' not in status.read_text(
          encoding='utf-8'
      ):
        assert time.monotonic() < deadline
        time.sleep(0.1)
      return
    _, told = run.communicate()
    assert run.returncode == 1
    assert told.startswith('error: the process that draws half of the figures')
    assert told.count('\n') == 1


@pytest.mark.slow
def test_files_are_utf_8_in_any_locale(tmp_path: pathlib.Path) -> None:
  done = commands.python(
      *('figures/make_all.py', '--only=fig3b', '--format=html'),
      f'--output={tmp_path}',
      PYTHONUTF8='0',
      PYTHONCOERCECLOCALE='0',
      PYTHONIOENCODING='ascii',
      LC_ALL='POSIX',
  )
  assert done.returncode == 0, done.stderr
  page = (tmp_path / 'fig3b.html').read_text('utf-8')
  assert not page.isascii()
  claims = (tmp_path / 'claims.md').read_text('utf-8')
  assert not claims.isascii()


def test_a_reader_who_stops_reading_is_no_error() -> None:
  """As in `figures/make_all.py | head`."""
  command = (
      'from modular_hyperteacher.cli import script;'
      " script.run(lambda: print('line\\n' * 10**5))"
  )
  with subprocess.Popen(
      [sys.executable, '-c', command],
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      cwd=made_up.ROOT,
  ) as run:
    assert run.stdout is not None and run.stderr is not None
    assert run.stdout.readline() == b'line\n'
    run.stdout.close()
    assert run.stderr.read() == b''
    assert run.wait() == 0

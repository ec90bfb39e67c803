"""The tutorial: its notebook is its script, and what it says holds."""

import json
import pathlib
import re
from typing import Any

import pandas as pd
import pytest

from modular_hyperteacher.experiments import plugins
from tests.helpers import commands

_SCRIPT = commands.ROOT / 'examples' / 'tutorial.py'
_NOTEBOOK = _SCRIPT.with_suffix('.ipynb')
_BUILD = 'rebuild the notebook, as CONTRIBUTING.md says'
# Run after the last cell: what the text says of its results, and its cost. Two
# cores spend at most ten minutes of CPU time in five minutes.
_CHECKS = """
import time

mean = accuracies.groupby(['model', 'combinations'])['accuracy'].mean()
assert mean['Linear hypernetwork', 'unseen'] > mean['MAML', 'unseen'] + 0.1
last = curves[curves['step'] == curves['step'].max()]
last = last.set_index(['support', 'combinations'])['accuracy']
gap = {
    support: last[support, 'seen'] - last[support, 'unseen']
    for support in style.SUPPORT_NAMES.values() if support in last
}
assert gap['Compositional support'] < 0.06, gap
assert gap['Non-compositional support'] > 0.12, gap
assert last['Non-compositional support', 'seen'] > 0.75
assert time.process_time() < 600, time.process_time()
"""


def _cells_of_script() -> list[tuple[str, str]]:
  """Returns the (type, source) of the script's py:percent cells."""
  _, *cells = re.split(r'^# %%', _SCRIPT.read_text(), flags=re.M)
  found = []
  for cell in cells:
    header, _, source = cell.partition('\n')
    if header == ' [markdown]':
      uncommented = re.sub(r'^# ?', '', source.strip(), flags=re.M)
      found.append(('markdown', uncommented))
    else:
      found.append(('code', source.strip()))
  return found


def _cells_of_notebook() -> list[dict[str, Any]]:
  return json.loads(_NOTEBOOK.read_text())['cells']


def test_the_notebook_holds_the_cells_of_the_script() -> None:
  cells = [
      (cell['cell_type'], ''.join(cell['source']))
      for cell in _cells_of_notebook()
  ]
  assert cells == _cells_of_script(), _BUILD


def test_the_notebook_holds_the_outputs_of_one_execution() -> None:
  cells = [c for c in _cells_of_notebook() if c['cell_type'] == 'code']
  counts = [cell['execution_count'] for cell in cells]
  assert counts == list(range(1, len(cells) + 1)), _BUILD
  outputs = [output for cell in cells for output in cell['outputs']]
  assert {o['output_type'] for o in outputs} == {'stream', 'display_data'}
  assert {o.get('name') for o in outputs} == {'stdout', None}
  images = [o for o in outputs if 'image/png' in o.get('data', {})]
  assert len(images) == 4
  assert _NOTEBOOK.stat().st_size < 500_000


def test_the_text_states_bundled_results() -> None:
  """Every number with two decimals, in the order of the text."""
  table = pd.read_csv(
      plugins.bundled_roots()[0] / 'fig3b/laptop/results.csv.gz'
  )
  table = table[table['kind'] == 'last']

  def mean(run: str, split: str, metric: str = 'accuracy') -> str:
    rows = table[
        table['run_id'].str.startswith(f'{run}-')
        & (table['split'] == split)
        & (table['metric'] == metric)
    ]
    assert rows['seed'].nunique() == len(rows) == 5
    return f'{rows["value"].mean():.2f}'

  modular, maml = 'random-linear_hypernetwork', 'random-maml'
  impossible = 'non_compositional-linear_hypernetwork'
  assert mean(maml, 'test') == mean(maml, 'ood')  # 'on both'
  expected = [
      *(mean(modular, 'ood'), mean(maml, 'ood')),
      *(mean(modular, 'test'), mean(modular, 'ood'), mean(maml, 'test')),
      *(mean(modular, 'ood', 'r2'), mean(maml, 'ood', 'r2')),
      *(mean(impossible, 'test'), mean(impossible, 'ood')),
      *(mean(modular, 'test'), mean(modular, 'ood')),
  ]
  text = '\n'.join(
      source for kind, source in _cells_of_script() if kind == 'markdown'
  )
  assert re.findall(r'\d\.\d\d', text) == expected


@pytest.mark.slow
def test_the_tutorial_runs_and_shows_what_it_says(
    tmp_path: pathlib.Path,
) -> None:
  missing = "pip install -e '.[tutorial]'"
  jupytext = pytest.importorskip('jupytext', reason=missing)
  nbclient = pytest.importorskip('nbclient', reason=missing)
  nbformat = pytest.importorskip('nbformat', reason=missing)
  pytest.importorskip('ipykernel', reason=missing)
  notebook = jupytext.read(_SCRIPT)
  notebook.cells.append(nbformat.v4.new_code_cell(_CHECKS))
  client = nbclient.NotebookClient(
      notebook, timeout=1800, resources={'metadata': {'path': str(tmp_path)}}
  )
  # As a user has it: with optimised machine code.
  client.execute(
      env=commands.environment(
          XLA_FLAGS='',
          PYTHONPATH=str(commands.ROOT),
          PLOTLY_RENDERER='plotly_mimetype',
      )
  )

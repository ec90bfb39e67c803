"""The pages in a real browser, at the widths of a phone and of screens."""

import pathlib
import re
import subprocess
import sys

import plotly.graph_objects as go
import pytest

from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.plotting import images
from modular_hyperteacher.figures.report import page as report
from tests.figures.report import reading
from tests.helpers import made_up

pytestmark = pytest.mark.slow


@pytest.fixture(scope='module', name='path')
def make_path(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
  """The report from the bundled results, as a fresh clone has it."""
  folder = tmp_path_factory.mktemp('report')
  (folder / 'results').mkdir()
  _make_all(f'--results={folder / "results"}', f'--output={folder}')
  return folder / 'report.html'


def _make_all(*arguments: str) -> None:
  run = subprocess.run(
      [sys.executable, made_up.ROOT / 'figures' / 'make_all.py']
      + ['--format=html', *arguments],
      capture_output=True,
      text=True,
      check=False,
  )
  assert run.returncode == 0, run.stderr


def test_every_figure_has_a_small_page(path: pathlib.Path) -> None:
  for name in registry.figures():
    assert (path.parent / f'{name}.html').stat().st_size < 500_000


@pytest.mark.parametrize('width', [360, 800, 1400])
def test_the_report_fits_and_works(path: pathlib.Path, width: int) -> None:
  found = reading.look(path, width, '#fig3b')
  assert found['width'] <= found['room'] <= width
  assert not found['errors'] and not found['lost']
  assert found['links'] > len(claims.known())
  assert found['drawn'] == found['plots'] > 30 and not found['empty']
  assert not found['sticking'] and found['navigation']


def test_the_report_fits_on_paper(path: pathlib.Path) -> None:
  paper = path.parent / 'paper.html'
  # A4 and US letter are as wide.
  text = path.read_text(encoding='utf-8')
  assert text.count('@media print') == 1
  paper.write_text(text.replace('@media print', '@media screen'))
  found = reading.look(paper, 680)
  assert found['width'] <= found['room']
  assert not found['sticking'] and not found['navigation']


def test_a_site_has_working_pages(tmp_path: pathlib.Path) -> None:
  _make_all('--only=fig2c,fig3b', f'--site={tmp_path}')
  for path in [*tmp_path.glob('*.html'), *tmp_path.glob('docs/*.html')]:
    page = reading.Page(path.read_text())
    for link in page.all('href', 'a') + page.all('src'):
      address = link.partition('#')[0]
      if not re.match('https?:', address):
        assert (path.parent / address).exists(), (path, link)
  docs = ('docs/index.html', 'docs/performance.html')
  for name in ('index.html', 'fig3b.html', *docs):
    found = reading.look(tmp_path / name, 360)
    assert found['width'] <= found['room']
    assert not found['errors'] and not found['lost'], name
    assert found['drawn'] == found['plots'] >= (0 if 'docs' in name else 1)


def test_markup_in_a_figure_is_drawn_as_text(tmp_path: pathlib.Path) -> None:
  """Plotly's labels take some tags; nothing in them runs."""
  evil = '<img src=x onerror="document.body.remove()"><script>x</script>'
  figure = go.Figure(go.Bar(x=[evil], y=[1], name=evil))
  figure.update_layout(title=evil, showlegend=True)
  path = tmp_path / 'one.html'
  path.write_text(report.picture_page(figure, 'one', evil))
  assert path.stat().st_size < 40_000
  images.write_script(tmp_path)
  found = reading.look(path, 800)
  assert found['drawn'] == found['plots'] == 1 and not found['errors']

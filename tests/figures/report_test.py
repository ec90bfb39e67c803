"""The page of all figures: what is in it, and how a browser takes it."""

import html
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest

from figures import claims
from figures import registry
from figures.library import data
from figures.plotting import images
from figures.report import page as report
from tests.helpers import made_up

_BROWSERS = ('chromium', 'chromium-browser', 'google-chrome', 'chrome')
_TIMEOUT_S = 400  # Ten seconds, on a machine that is not busy.


class _Page(html.parser.HTMLParser):
  """Collects ids, links, headings, and what has no name."""

  def __init__(self, text: str) -> None:
    super().__init__()
    self.ids, self.links, self.sources, self.headings = [], [], [], []
    self.regions, self.images = [], []
    self.feed(text)

  def handle_starttag(
      self, tag: str, attrs: list[tuple[str, str | None]]
  ) -> None:
    attributes = dict(attrs)
    self.ids += [attributes['id']] if 'id' in attributes else []
    self.links += [attributes['href']] if 'href' in attributes else []
    self.sources += [attributes['src']] if 'src' in attributes else []
    if re.fullmatch('h[1-6]', tag):
      self.headings.append(int(tag[1]))
    if attributes.get('role') == 'region':
      self.regions.append(attributes)
    if attributes.get('role') == 'img':
      self.images.append(attributes)


@pytest.fixture(scope='module', name='text')
def make_text(tmp_path_factory: pytest.TempPathFactory) -> str:
  """A report with results, without, and with a stale bundle."""
  root = tmp_path_factory.mktemp('results')
  made_up.write_runs(root / 'own', made_up.AS_CLAIMED)
  longer = {'training.num_outer_steps': 3001}
  stale = {('maml', 'random'): 0.2}
  made_up.write_runs(root / 'bundled', stale, override=longer)
  return _make_report(data.Library(root / 'own', root / 'bundled'))


def _make_report(library: data.Library) -> str:
  drawn = {
      name: report.Drawn(*figure.make(library))
      for name, figure in registry.FIGURES.items()
  }
  entries = claims.evaluate(library)
  return report.make(drawn, claims.CLAIMS, entries, library)


@pytest.fixture(scope='module', name='page')
def make_page(text: str) -> _Page:
  # Scripts hold no markup of the page.
  return _Page(re.sub('<script.*?</script>', '', text, flags=re.DOTALL))


def test_every_figure_and_every_claim_has_its_place(
    page: _Page, text: str
) -> None:
  assert set(registry.FIGURES) <= set(page.ids)
  for claim in claims.CLAIMS:
    assert f'href="#{claim.figure}">{claim.id}</a>' in text
  assert text.count('class="claim ') == len(claims.CLAIMS)


def test_links_lead_somewhere_and_ids_are_unique(page: _Page) -> None:
  inner = {link[1:] for link in page.links if link.startswith('#')}
  assert inner <= set(page.ids)
  assert len(set(page.ids)) == len(page.ids)
  assert len(inner) > len(claims.CLAIMS)


def test_nothing_is_fetched(page: _Page, text: str) -> None:
  assert not page.sources
  outer = [link for link in page.links if not link.startswith('#')]
  assert outer == ['data:,']  # An empty icon, or browsers would look for one.
  assert text.count('plotly.js v') == 1


def test_claims_come_with_verdict_scale_cost_command_and_config(
    text: str,
) -> None:
  found = re.search('<article id="fig3b".*?</article>', text, re.DOTALL)
  assert found is not None
  article = found[0]
  for expected in (
      '✓ SUPPORTED</span> 0.260 ± 0.012, 3 seeds, laptop scale.',
      'laptop, not the published scale; 8 runs',
      '--config=configs/fig3b.py</code>',
      '8 minutes (12 of one processor core) of training in all, on abacus',
      'own, of commit abc',
      '<a href="#config-fig3b">configs/fig3b.py</a>',
  ):
    assert expected in article
  assert 'def get_config(preset' in text[text.index('id="config-fig3b"') :]
  # Where its numbers are.
  shared = text[text.index('id="config-hyperteacher"') :]
  assert 'table_a10' in shared[: shared.index('</details>')]


def test_every_claim_that_is_not_supported_is_explained() -> None:
  entries = claims.evaluate(data.Library(pathlib.Path('nothing')))
  failed = {
      (e['id'], e['preset'])
      for e in entries
      if e['verdict'] not in ('SUPPORTED', 'NOT RUN')
  }
  explained = pd.read_csv(report.EXPLANATIONS)
  assert failed == set(zip(explained['id'], explained['preset']))
  assert explained['why'].str.len().between(40, 600).all()


def test_explanations_stand_beside_failures_only() -> None:
  (claim,) = [c for c in claims.CLAIMS if c.id == '3D']
  entry: Any = dict(
      id='3D',
      verdict='CONTRADICTED',
      effect=0.1,
      standard_error=0.2,
      num_seeds=3,
      preset='laptop',
      note='',
  )
  assert 'With two (figure `two_layers`' in report._claim(claim, entry)
  for other in ({'verdict': 'SUPPORTED'}, {'preset': 'paper'}):
    assert 'Why:' not in report._claim(claim, entry | other)


def test_stale_bundles_are_named(text: str) -> None:
  assert re.search('<li>fig3b/laptop/random-maml-[0-9a-f]{10}</li>', text)


def test_the_page_can_be_read_aloud_and_by_keyboard(
    page: _Page, text: str
) -> None:
  assert '<html lang="en">' in text
  assert page.headings[0] == 1 and page.headings.count(1) == 1
  steps = zip(page.headings, page.headings[1:])
  assert all(after <= before + 1 for before, after in steps)
  assert len(page.images) == sum('-plot' in name for name in page.ids)
  assert all(image['aria-label'] for image in page.images)
  for region in page.regions:  # What scrolls can be reached and has a name.
    assert region['tabindex'] == '0' and region['aria-label']


def test_figures_on_the_page_leave_words_to_it(text: str) -> None:
  matched = re.search('id="fig3b-plot-data">(.*?)</script>', text, re.DOTALL)
  assert matched is not None
  found = matched[1]
  figure = json.loads(found)
  assert not figure['layout'].get('title')
  assert not any(
      'laptop scale' in note['text'] for note in figure['layout']['annotations']
  )
  caption = text[text.index('id="fig3b-plot-data"') :]
  assert 'laptop scale, 3 seeds' in caption.partition('</figcaption>')[0]


@pytest.mark.parametrize(
    'name, letter, number',
    [('discrepancies', 'D', 45), ('discrepancies_seq2seq', 'S', 20)],
)
def test_all_documented_discrepancies_are_listed(
    text: str, name: str, letter: str, number: int
) -> None:
  folder = pathlib.Path(report.__file__).parent
  table = pd.read_csv(folder / f'{name}.csv')
  assert table['id'].tolist() == [f'{letter}{i}' for i in range(1, number + 1)]
  assert table.notna().all().all()
  assert all(f'<td>{name}</td>' in text for name in table['id'])


def test_a_browser_draws_every_figure_without_complaint(
    text: str, tmp_path: pathlib.Path
) -> None:
  path = tmp_path / 'report.html'
  path.write_text(text)
  run = _browse(path)
  assert 'data-finished="yes"' in run.stdout
  assert 'data-errors' not in run.stdout
  charts = re.findall('<div class="plot[^>]*data-drawn="yes"', run.stdout)
  assert len(charts) == len(_Page(text).images) > 10
  # Drawn means that there is something in it.
  assert run.stdout.count('class="main-svg"') >= len(charts)


# Shows a page as narrow as a window cannot be, and says how wide it gets.
_FRAME = """<iframe id="frame" src="{page}" width="{width}" height="800"
 style="border:0"></iframe>
<script>
  const frame = document.getElementById('frame');
  const wait = setInterval(() => {{
    const page = frame.contentDocument && frame.contentDocument.documentElement;
    if (!page || page.dataset.finished !== 'yes') return;
    clearInterval(wait);
    const shown = page.querySelector('nav').getClientRects().length > 0;
    document.body.dataset.result = JSON.stringify({{
      width: page.scrollWidth, room: page.clientWidth, navigation: shown,
      plots: Math.max(...[...page.querySelectorAll('.main-svg')].map(
        (plot) => plot.getBoundingClientRect().width)),
    }});
  }}, 100);
</script>"""


@pytest.mark.parametrize(
    'medium, width',
    [('phone', 375), ('print', 680)],  # A4 and US letter have as much.
)
def test_nothing_sticks_out(
    text: str, tmp_path: pathlib.Path, medium: str, width: int
) -> None:
  """Tables and charts scroll within the page, or, on paper, fit it."""
  if medium == 'print':
    assert text.count('@media print') == 1
    text = text.replace('@media print', '@media screen')
  (tmp_path / 'report.html').write_text(text)
  path = tmp_path / 'frame.html'
  path.write_text(_FRAME.format(page='report.html', width=width))
  run = _browse(path, '--allow-file-access-from-files')
  matched = re.search('data-result="(.*?)"', run.stdout)
  assert matched is not None
  found = json.loads(html.unescape(matched[1]))
  assert found['width'] <= found['room'] <= width
  assert found['navigation'] == (medium == 'phone')
  if medium == 'print':
    assert 0 < found['plots'] <= width


@pytest.mark.slow
def test_a_browser_draws_what_is_bundled(tmp_path: pathlib.Path) -> None:
  """Every figure from the repository's own results, as a fresh clone has it."""
  library = data.Library(tmp_path / 'nothing')
  path = tmp_path / 'report.html'
  path.write_text(_make_report(library))
  run = _browse(path)
  assert 'data-finished="yes"' in run.stdout
  assert 'data-errors' not in run.stdout
  charts = re.findall('<div class="plot[^>]*data-drawn="yes"', run.stdout)
  assert len(charts) == len(_Page(path.read_text()).images) > 10


def test_a_browser_draws_a_page_with_the_script_beside_it(
    tmp_path: pathlib.Path,
) -> None:
  figure = go.Figure(go.Scatter(y=[1, 2]))
  path = tmp_path / 'one.html'
  path.write_text(images.to_page(figure, 'one'))
  assert path.stat().st_size < 20_000
  images.write_script(tmp_path)
  assert 'class="main-svg"' in _browse(path).stdout


def _browse(
    path: pathlib.Path, *options: Any
) -> subprocess.CompletedProcess[str]:
  """Opens a page in a browser, which must not complain."""
  browser = os.environ.get('BROWSER_PATH') or next(
      filter(None, map(shutil.which, _BROWSERS)), None
  )
  if browser is None:
    pytest.skip('no Chrome or Chromium; apt-get install chromium, for one')
  run = subprocess.run(
      [
          *(browser, '--headless=new', '--no-sandbox', '--disable-gpu'),
          f'--user-data-dir={path.parent / "profile"}',
          *('--virtual-time-budget=60000', '--enable-logging=stderr'),
          *options,
          *('--dump-dom', path.as_uri()),
      ],
      capture_output=True,
      text=True,
      check=False,
      timeout=_TIMEOUT_S,
  )
  assert run.returncode == 0, run.stderr
  said = [line for line in run.stderr.splitlines() if 'CONSOLE' in line]
  assert not said, said
  return run

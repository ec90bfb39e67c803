"""The page of all figures: what is in it, and in which order."""

import json
import math
import pathlib
import re
from typing import Any

import pandas as pd
from plotly import offline
import pytest

from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.report import overview
from modular_hyperteacher.figures.report import page as report
from modular_hyperteacher.studies import meta_seq2seq
from tests.figures.report import reading
from tests.helpers import made_up

pytestmark = pytest.mark.slow  # Most draw every figure.

_ENTRY: Any = dict(
    id='4B',
    sentence='it says something',
    source='bundled',
    verdict='UNDECIDED',
    effect=0.1,
    bound=0.0,
    standard_error=0.2,
    num_seeds=3,
    preset='laptop',
    note='smallest: one',
    t=0.5,
    p=0.33,
    interval=(-0.5, 0.7),
    comparisons=[],
)


@pytest.fixture(scope='module', name='library')
def make_library(tmp_path_factory: pytest.TempPathFactory) -> data.Library:
  """Some experiments have results, most have none, one has a stale bundle."""
  root = tmp_path_factory.mktemp('results')
  made_up.write_runs(root / 'own', made_up.AS_CLAIMED)
  longer = {'training.num_outer_steps': 3001}
  stale = {('maml', 'random'): 0.2}
  made_up.write_runs(root / 'bundled', stale, override=longer)
  return data.Library(root / 'own', root / 'bundled')


@pytest.fixture(scope='module', name='drawn')
def make_drawn(library: data.Library) -> dict[str, report.Drawn]:
  return {
      name: report.Drawn(*figure.make(library))
      for name, figure in registry.figures().items()
  }


@pytest.fixture(scope='module', name='text')
def make_text(library: data.Library, drawn: dict[str, report.Drawn]) -> str:
  judged = list(zip(claims.known(), claims.evaluate(library)))
  return report.Report(drawn, judged, library).page()


def test_every_row_of_every_table_says_its_scale(
    drawn: dict[str, report.Drawn],
) -> None:
  allowed = {'laptop', 'paper', 'constructed', 'published', 'no run', ''}
  for name, (_, table) in drawn.items():
    assert 'preset' in table, name
    assert set(table['preset'].astype(str)) <= allowed, name


def test_names_between_backticks_are_code() -> None:
  picture = dict(name='a', title='t', chart=None, caption=[], claims=[])
  table = {'choice': ['set `a_b` & c']}
  figure = dict(
      picture, table=table, num_rows=1, max_rows=1, runs=[], findings=[]
  )
  text = report.render('figure.html', 't', figure=figure)
  assert 'set <code>a_b</code> &amp; c' in text


@pytest.fixture(scope='module', name='page')
def make_page(text: str) -> reading.Page:
  return reading.Page(text)


def test_every_figure_and_every_claim_has_its_place(
    page: reading.Page, text: str
) -> None:
  assert set(registry.figures()) <= set(page.all('id'))
  for claim in claims.known():
    assert f'href="#claim-{claim.id}"' in text
    assert text.count(f'id="claim-{claim.id}"') == 1
  assert page.all('class', 'svg').count('strip') == len(claims.known())


def test_the_page_opens_with_the_answer(text: str) -> None:
  """The picture, then a row per figure of the paper, then chapters."""
  answer, _, rest = text.partition('</section>')
  order = ['Does the paper hold?', 'summary-plot', 'Figure 2C', 'Figure A10']
  places = [answer.index(part) for part in order]
  assert places == sorted(places)
  assert 'class="strip"' not in answer  # Marks of claims are in their chapters.
  rows = re.findall('<tr>.*?</tr>', answer, re.DOTALL)
  (row,) = [row for row in rows if 'Figure 3B' in row]
  for claim in ('3B-1', '3B-2'):
    below = rest.partition(f'id="claim-{claim}"')[2]
    verdict = re.search('class="verdict .*?">. ([A-Z ]+)\n', below)
    assert verdict and f'{verdict[1]} ({claim})' in row
  shown = [c for c in claims.PAPER if f'href="#claim-{c.id}"' in answer]
  assert len(shown) == 26
  assert '-adam' not in answer
  headings = re.findall('<h2 id="(.*?)"', rest)
  assert headings[0] == 'theory'


def test_a_figure_comes_before_its_claims_and_numbers(text: str) -> None:
  article = _article(text, 'fig3b')
  order = ['fig3b-plot', 'laptop scale, 3 seeds', 'id="claim-3B-1"']
  order += ['The numbers', 'How to reproduce it']
  places = [article.index(part) for part in order]
  assert places == sorted(places)
  assert '<details><summary>The numbers' in article
  # A table of the paper has no picture.
  assert '<details open><summary>The numbers' in _article(text, 'table_a1')


def test_links_lead_somewhere_and_ids_are_unique(page: reading.Page) -> None:
  ids = page.all('id')
  inner = {link[1:] for link in page.all('href') if link.startswith('#')}
  assert inner <= set(ids)
  assert len(set(ids)) == len(ids)
  assert len(inner) > len(claims.known())


def test_nothing_is_fetched(page: reading.Page, text: str) -> None:
  assert not page.all('src')
  outer = [link for link in page.all('href') if not link.startswith('#')]
  assert outer == ['data:,']  # An empty icon, or browsers would look for one.
  assert page.packed()[-1] == offline.get_plotlyjs()
  assert len(text.encode()) < 3e6


def test_claims_come_with_scale_cost_and_command(text: str) -> None:
  article = _article(text, 'fig3b')
  for expected in (
      '0.260 ± 0.012',
      '3 seeds, laptop scale.',
      'laptop, not the published scale; 8 runs',
      '--config=configs/fig3b.py:workstation</dd>',
      '8 minutes (CPU time 12 minutes) of training, on abacus',
      'own, of commit abc',
  ):
    assert expected in article


def _article(text: str, name: str) -> str:
  found = re.search(f'<article id="{name}".*?</article>', text, re.DOTALL)
  assert found is not None
  return found[0]


def test_every_claim_that_is_not_supported_is_explained() -> None:
  entries = claims.evaluate(data.Library(pathlib.Path('nothing')))
  decided = {(e['id'], e['preset'], e['verdict']) for e in entries}
  failed = {e for e in decided if e[2] not in ('SUPPORTED', 'NOT RUN')}
  explained = pd.read_csv(overview.EXPLANATIONS)
  names = set(zip(explained['id'], explained['preset'], explained['verdict']))
  assert failed <= names <= decided
  assert explained['why'].str.len().between(40, 600).all()


def test_explanations_stand_beside_their_claims() -> None:
  described = overview.describe(_ENTRY)
  assert 'too little to recompose anything' in described['why']
  assert described['measured'] == (
      '0.100 ± 0.200 (90% interval -0.500 to 0.700, t = 0.500, p = 0.330), 3'
      ' seeds, laptop scale.'
  )
  one = {**_ENTRY, 'name': 'one', 'bound': 0.02}
  one |= {'holds': False, 'reversed': False}
  described = overview.describe({**_ENTRY, 'comparisons': [one]})
  assert described['comparisons']['comparison'] == ['one']
  assert described['comparisons']['effect'] == ['0.100 ± 0.200']
  assert described['comparisons']['to'] == ['0.700']
  assert described['comparisons']['result'] == ['undecided']
  for other in (
      {'verdict': 'SUPPORTED'},
      {'preset': 'paper'},
      {'source': 'own'},  # The explanation is of the bundled runs.
  ):
    assert not overview.describe({**_ENTRY, **other})['why']


def test_marks_stand_where_effects_are() -> None:
  mark = overview.describe(_ENTRY)
  assert 0 < mark['low'] < 50 < mark['x'] < mark['high'] < 100
  # The bound lies where t is 0: 0.1 below the effect of half a standard error.
  touching = overview.describe(_ENTRY | {'interval': (0.0, 0.2)})
  assert touching['low'] == 50
  assert overview.position(math.inf) == overview.position(99) == 97
  assert overview.position(-30) == 3
  none = _ENTRY | {'t': None, 'verdict': 'NOT RUN', 'interval': None}
  mark = overview.describe(none)
  assert (mark['x'], mark['low'], mark['high']) == (50, None, None)


def test_verdicts_are_told_by_shape_as_well(text: str) -> None:
  kinds = [overview.kind(verdict) for verdict in overview.SYMBOLS]
  assert len(set(overview.SYMBOLS.values())) == len(kinds)
  for kind in kinds:
    assert f'id="mark-{kind}"' in text and f'.{kind} {{' in text


def test_stale_bundles_are_named(text: str) -> None:
  assert re.search('<li>fig3b/laptop/random-maml-[0-9a-f]{10}</li>', text)


def test_the_page_can_be_read_aloud_and_by_keyboard(
    page: reading.Page, text: str
) -> None:
  assert '<html lang="en">' in text
  tags = [tag for tag, _ in page.tags]
  assert [tags.count(t) for t in ('header', 'nav', 'main')] == [1, 1, 1]
  levels = [int(tag[1]) for tag in tags if re.fullmatch('h[1-6]', tag)]
  assert levels[0] == 1 and levels.count(1) == 1
  assert all(after <= before + 1 for before, after in zip(levels, levels[1:]))
  named = set(page.all('aria-labelledby', 'section'))
  assert len(named) == tags.count('section') > 5 and named <= set(
      page.all('id')
  )
  images = page.with_role('img')
  assert len(images) == tags.count('figure')
  assert all(image['aria-label'] for image in images)
  for region in page.with_role('region'):  # Can be reached and has a name.
    assert region['tabindex'] == '0' and region['aria-label']


def test_figures_on_the_page_leave_words_to_it(text: str) -> None:
  script = '<script.* id="fig3b-plot-data">.*?</script>'
  matched = re.search(script, text)
  assert matched is not None
  (packed,) = reading.Page(matched[0]).packed()
  figure = json.loads(packed)
  assert not figure['layout'].get('title')
  assert not any(
      'laptop scale' in note['text'] for note in figure['layout']['annotations']
  )
  caption = text[matched.end() :]
  assert 'laptop scale, 3 seeds' in caption.partition('</figcaption>')[0]


@pytest.mark.parametrize(
    'path, letter, number',
    [
        (pathlib.Path(report.__file__).parent / 'discrepancies.csv', 'D', 45),
        (meta_seq2seq.STUDY.folder / 'discrepancies.csv', 'S', 20),
    ],
)
def test_all_documented_discrepancies_are_listed(
    text: str, path: pathlib.Path, letter: str, number: int
) -> None:
  table = pd.read_csv(path)
  assert table['id'].tolist() == [f'{letter}{i}' for i in range(1, number + 1)]
  assert table.notna().all().all()
  assert all(f'<td>{name}</td>' in text for name in table['id'])

"""What files say stays text on the page."""

import base64
import hashlib
import json
import pathlib
import re
from typing import Any

import pytest

from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.report import page as report
from tests.figures.report import reading
from tests.helpers import made_up

_EVIL = '<script>alert(1)</script><!-- "onmouseover=\'alert(2)\' x="'
_POLICY = (
    r"default-src 'none'; script-src 'sha256-(\S+)' 'strict-dynamic'; "
    "style-src 'unsafe-inline'; img-src 'self' data: blob:; base-uri 'none'; "
    "form-action 'none'"
)


def _write_evil_bundle(root: pathlib.Path) -> None:
  """Writes Figure 3B's runs, whose sessions are named by HTML."""
  runs = made_up.write_runs(root / 'runs', made_up.AS_CLAIMED)
  folder = root / 'bundled/fig3b/laptop'
  bundles.write_bundle(runs / 'fig3b/laptop', folder)
  path = folder / 'provenance.json'
  stored: Any = json.loads(path.read_text())
  for run in stored['runs'].values():
    run['sessions'][0] |= {'commit': _EVIL, 'device_kind': _EVIL}
  path.write_text(json.dumps(stored))


@pytest.fixture(scope='module', name='pages')
def make_pages(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
  root = tmp_path_factory.mktemp('evil')
  _write_evil_bundle(root)
  library = data.Library(root / 'nothing', root / 'bundled')
  names = ('fig3b', 'fig3e', 'table_a10')
  drawn = {
      name: report.Drawn(*registry.figures()[name].make(library))
      for name in names
  }
  entries: Any = [e | {'note': _EVIL} for e in claims.evaluate(library)]
  judged = list(zip(claims.known(), entries))
  whole = report.Report(drawn, judged, library)
  figure, table = drawn['fig3b']
  whole.drawn['fig3b'].table.insert(0, _EVIL, _EVIL)
  assert figure is not None
  return [
      whole.page(),
      whole.figure_page('fig3b'),
      report.picture_page(figure, _EVIL, _EVIL),
  ]


def test_names_from_files_are_text(pages: list[str]) -> None:
  for text in pages:
    page = reading.Page(text)
    names = {name for _, found in page.tags for name in found}
    assert not [name for name in names if name.startswith('on')]
    assert not [name for name in names if 'alert' in name]
    kinds = [kind for kind, _ in page.scripts]
    assert set(kinds) <= {None, 'application/gzip'}
    assert kinds.count(None) == 1  # Ours.
    assert not any(
        'alert' in script for kind, script in page.scripts if not kind
    )
    assert '</html>' in text[-10:] and '<!--' not in text.partition('<body')[2]
    figures = [text for text in page.packed() if text.startswith('{')]
    assert figures and all(json.loads(text)['data'] for text in figures)
  words = ''.join(reading.Page(pages[0]).words)
  assert f'bundled, of commit {_EVIL}' in words  # The session's.
  assert f'on {_EVIL}' in words  # Its device.


def test_a_run_id_that_holds_html_is_left_out(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
  _write_evil_bundle(tmp_path)
  path = tmp_path / 'bundled/fig3b/laptop/provenance.json'
  stored: Any = json.loads(path.read_text())
  stored['runs'] = {f'{_EVIL}{n}': run for n, run in stored['runs'].items()}
  path.write_text(json.dumps(stored))
  library = data.Library(tmp_path / 'nothing', tmp_path / 'bundled')
  assert library.values('fig3b').empty
  assert 'it must be a plain name' in capsys.readouterr().err


def test_one_script_may_run(pages: list[str]) -> None:
  for text in pages:
    page = reading.Page(text)
    (policy,) = [
        found['content'] or ''
        for tag, found in page.tags
        if tag == 'meta' and found.get('http-equiv')
    ]
    matched = re.fullmatch(_POLICY, policy)
    assert matched is not None, policy
    ((_, script),) = [found for found in page.scripts if not found[0]]
    digest = hashlib.sha256(script.encode()).digest()
    assert base64.b64encode(digest).decode() == matched[1]

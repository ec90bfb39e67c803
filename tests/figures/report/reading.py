"""Reads pages as a parser and a browser do."""

import base64
import gzip
import html
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
from typing import Any

import pytest

_BROWSERS = ('chromium', 'chromium-browser', 'google-chrome', 'chrome')
_TIMEOUT_S = 400  # Ten seconds, on a machine that is not busy.


class Page(html.parser.HTMLParser):
  """What is on a page, by kind."""

  def __init__(self, text: str) -> None:
    super().__init__()
    self.tags: list[tuple[str, dict[str, str | None]]] = []
    self.words: list[str] = []  # That a reader sees.
    self.scripts: list[tuple[str | None, str]] = []  # (type, content)
    self._inside: tuple[str, str | None] = ('', None)
    self.feed(text)
    self.close()

  def handle_starttag(
      self, tag: str, attrs: list[tuple[str, str | None]]
  ) -> None:
    attributes = dict(attrs)
    self.tags.append((tag, attributes))
    self._inside = tag, attributes.get('type')
    if tag == 'script':
      self.scripts.append((attributes.get('type'), ''))

  def handle_endtag(self, tag: str) -> None:
    self._inside = '', None

  def handle_data(self, data: str) -> None:
    tag, kind = self._inside
    if tag == 'script':
      self.scripts[-1] = kind, self.scripts[-1][1] + data
    elif tag != 'style':
      self.words.append(data)

  def all(self, attribute: str, tag: str = '') -> list[str]:
    """Returns the values of an attribute, of one tag or of all."""
    return [
        attributes[attribute] or ''
        for name, attributes in self.tags
        if attribute in attributes and name == (tag or name)
    ]

  def packed(self) -> list[str]:
    """Returns the figures' data, and plotly's script if it is on the page."""
    return [
        gzip.decompress(base64.b64decode(content, validate=True)).decode()
        for kind, content in self.scripts
        if kind == 'application/gzip'
    ]

  def with_role(self, role: str) -> list[dict[str, str | None]]:
    """Returns the attributes of the elements of a role."""
    return [found for _, found in self.tags if found.get('role') == role]


# Shows a page as narrow as a window cannot be, and says what came out.
_FRAME = """<iframe id="frame" src="{page}" width="{width}" height="800"
 style="border:0"></iframe>
<script>
  const frame = document.getElementById('frame');
  const wait = setInterval(() => {{
    const page = frame.contentDocument && frame.contentDocument.documentElement;
    if (!page || page.dataset.finished !== 'yes') return;
    clearInterval(wait);
    const all = (selector) => [...page.querySelectorAll(selector)];
    const links = all('a[href^="#"]').map((link) => link.hash.slice(1));
    document.body.dataset.result = JSON.stringify({{
      width: page.scrollWidth, room: page.clientWidth,
      errors: page.dataset.errors || '',
      lost: links.filter((id) => !frame.contentDocument.getElementById(id)),
      links: links.length,
      plots: all('.plot').length, drawn: all('.plot[data-drawn="yes"]').length,
      empty: all('.plot').filter((p) => !p.querySelector('.main-svg')).length,
      sticking: all('.main-svg').filter(
        (svg) => !svg.closest('.wide') &&
          svg.getBoundingClientRect().right > page.clientWidth + 1).length,
      navigation: page.querySelector('nav').getClientRects().length > 0,
    }});
  }}, 100);
</script>"""


def look(path: pathlib.Path, width: int, anchor: str = '') -> dict[str, Any]:
  """Opens a page in a browser and returns what a reader would meet.

  Skips the test without a browser; fails if the browser's console says
  anything.

  Args:
    path: the page.
    width: the width of the window, in pixels.
    anchor: where it is opened, such as '#configs'.
  """
  frame = path.parent / 'frame.html'
  frame.write_text(_FRAME.format(page=path.name + anchor, width=width))
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
          f'--window-size={max(width, 500)},900',
          *('--allow-file-access-from-files', '--dump-dom', frame.as_uri()),
      ],
      capture_output=True,
      text=True,
      check=False,
      timeout=_TIMEOUT_S,
  )
  assert run.returncode == 0, run.stderr
  said = [line for line in run.stderr.splitlines() if 'CONSOLE' in line]
  assert not said, said
  matched = re.search('data-result="(.*?)"', run.stdout)
  assert matched is not None, run.stderr
  return json.loads(html.unescape(matched[1]))

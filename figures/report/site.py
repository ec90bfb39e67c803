"""The documentation as web pages, beside those of the figures."""

import functools
import pathlib
import re
import shutil

import markupsafe

from modular_hyperteacher import errors
from modular_hyperteacher.figures.report import page

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_IMAGES = ('.png', '.svg', '.jpg', '.gif')
_LINK = re.compile(r' (href|src)="([^":#]+)(#[^"]*)?"')


def write_docs(output: pathlib.Path, home: str) -> None:
  """Writes `docs/*.html` from the repository's `docs/*.md`, and their images.

  They link to `home`, the page of everything.

  Raises:
    UserError: without the package that translates Markdown.
  """
  try:
    import markdown
  except ImportError as error:
    raise errors.UserError(
        '--site needs the package markdown; run'
        " pip install 'modular_hyperteacher[figures]'."
    ) from error

  pages = sorted((_ROOT / 'docs').glob('*.md'))
  if not pages:
    raise errors.UserError(
        '--site needs the pages of docs/, which an installed package lacks; run'
        ' it in a clone of the repository.'
    )
  folder = output / 'docs'
  folder.mkdir(parents=True, exist_ok=True)
  for path in pages:
    heading, _, text = path.read_text('utf-8').partition('\n')
    title = heading.lstrip('# ').replace('`', '')
    body = markdown.markdown(text, extensions=['extra', 'toc', 'sane_lists'])
    body = _LINK.sub(functools.partial(_link, path, output), body)
    _write(folder / _html(path), title, body, f'../{home}')
  (output / '.nojekyll').touch()  # GitHub Pages then serves files as they are.


def _html(page_: pathlib.Path) -> str:
  """Returns the name of a page on the site; docs/README.md is the index."""
  return f'{"index" if page_.stem == "README" else page_.stem}.html'


def _link(
    path: pathlib.Path, output: pathlib.Path, match: re.Match[str]
) -> str:
  """Returns a link's attribute on the site; '' if it leads off the site.

  Images are copied to the site.
  """
  name, address, anchor = match.groups()
  target = (path.parent / address).resolve()
  if target.parent == path.parent and target.suffix == '.md':
    return f' {name}="{_html(target)}{anchor or ""}"'
  if target.suffix not in _IMAGES or not target.is_relative_to(_ROOT):
    return ''
  copy = output / target.relative_to(_ROOT)
  copy.parent.mkdir(parents=True, exist_ok=True)
  shutil.copyfile(target, copy)
  return match[0]


def _write(path: pathlib.Path, title: str, body: str, home: str) -> None:
  links = [(home, 'All figures and claims'), ('index.html', 'Documentation')]
  # The repository's own text.
  text = page.render(
      'base.html', title, links=links, body=markupsafe.Markup(body)
  )
  path.write_text(text, 'utf-8')

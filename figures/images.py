"""Pages of figures, and images where a browser can be found to draw them."""

import asyncio
import pathlib

import plotly.graph_objects as go
from plotly import offline

from figures import style
from modular_hyperteacher import results

FORMATS = ('svg', 'png', 'pdf')
_SCALES = {'png': 2}  # Pixels per unit of the layout.
_TIMEOUT_S = 90
_SECONDS_PER_IMAGE = 5  # At most, on average; busy machines need some of it.
_SCRIPT = 'plotly.min.js'  # As plotly calls it where it lies beside a page.


def to_page(figure: go.Figure, name: str) -> str:
  """Returns a page of one figure, which needs the script in its folder."""
  return figure.to_html(
      config=style.PAGE, include_plotlyjs='directory', div_id=name
  )


def write_script(folder: pathlib.Path) -> None:
  """Writes plotly's script: once for all pages, which need no network then."""
  path, script = folder / _SCRIPT, offline.get_plotlyjs()
  if not path.exists() or path.stat().st_size != len(script.encode()):
    results.write_atomically(path, script)


def export(
    figures: dict[str, go.Figure],
    formats: list[str],
    folder: pathlib.Path,
) -> str | None:
  """Writes `<name>.<format>` for every figure; says why if it cannot.

  Kaleido is an optional dependency, and draws with a Chrome or Chromium of
  the user's own. All figures share one browser, which takes a second to start.

  Args:
    figures: name -> figure.
    formats: out of FORMATS.
    folder: where to write.

  Returns:
    None, or a sentence on what is in the way and how to mend it.
  """
  if not formats:
    return None
  try:
    # Not at the top: figures are drawn without it.
    import kaleido  # pylint: disable=g-import-not-at-top
  except ImportError:
    return (
        'no static images: kaleido is not installed; run'
        " pip install 'modular_hyperteacher[figures]'."
    )

  async def draw():
    # Without MathJax, which kaleido would fetch from the network.
    async with kaleido.Kaleido(mathjax=False, timeout=_TIMEOUT_S) as browser:
      for name, figure in figures.items():
        for image_format in formats:
          options = {
              'format': image_format,
              'width': figure.layout.width,
              'height': figure.layout.height,
              'scale': _SCALES.get(image_format, 1),
          }
          image = await browser.calc_fig(figure, opts=options)
          (folder / f'{name}.{image_format}').write_bytes(image)

  try:
    num_images = len(figures) * len(formats)
    timeout = _TIMEOUT_S + _SECONDS_PER_IMAGE * num_images
    asyncio.run(asyncio.wait_for(draw(), timeout))
  # A browser fails in ways of its own, and the HTML is there in any case.
  except Exception as error:  # pylint: disable=broad-exception-caught
    reason = str(next(iter(error.args), '')).strip().partition('\n')[0]
    return (
        'no static images: they need Chrome or Chromium; install one (apt-get'
        ' install chromium, or kaleido_get_chrome), or set BROWSER_PATH to'
        f' yours. {type(error).__name__}: {reason.partition(". ")[0]}'
    )
  return None

"""Plotly's script, and static images, which need a browser."""

import asyncio
import pathlib
from typing import Any

from plotly import offline
import plotly.graph_objects as go

from modular_hyperteacher import files

FORMATS = ('svg', 'png', 'pdf')
_SCALES = {'png': 2}  # Pixels per unit of the layout.
_TIMEOUT_S = 90
_SECONDS_PER_IMAGE = 5  # Generous, for busy machines.
_CLOSE_S = 10
_SCRIPT = 'plotly.min.js'  # The name that pages refer to.


def write_script(folder: pathlib.Path) -> None:
  """Writes plotly's script once, so that all pages work without a network."""
  path, script = folder / _SCRIPT, offline.get_plotlyjs()
  if not path.exists() or path.stat().st_size != len(script.encode()):
    files.write_atomically(path, script)


def export(
    figures: dict[str, go.Figure],
    formats: list[str],
    folder: pathlib.Path,
) -> str | None:
  """Writes `<name>.<format>` for every figure.

  Kaleido is an optional dependency and needs the user's Chrome or Chromium. All
  figures share one browser, which takes a second to start.

  Returns:
    None, or a sentence that says what is missing and how to install it.
  """
  if not formats:
    return None
  try:
    import kaleido  # pyright: ignore[reportMissingImports]
  except ImportError:
    return (
        'no static images: kaleido is not installed; run pip install kaleido.'
    )

  async def draw() -> None:
    # Kaleido would fetch MathJax from the network.
    browser = kaleido.Kaleido(mathjax=False, timeout=_TIMEOUT_S)
    # `async with` would leave a browser running that does not answer, and
    # Python would wait for it.
    try:
      await browser.open()
      for name, figure in figures.items():
        layout: Any = figure.layout
        for image_format in formats:
          options: Any = {
              'format': image_format,
              'width': layout.width,
              'height': layout.height,
              'scale': _SCALES.get(image_format, 1),
          }
          image = await browser.calc_fig(figure, opts=options)
          (folder / f'{name}.{image_format}').write_bytes(image)
    finally:
      # Asks it to close; after this time, it is killed.
      await asyncio.wait_for(browser.close(), _CLOSE_S)

  try:
    num_images = len(figures) * len(formats)
    timeout = _TIMEOUT_S + _SECONDS_PER_IMAGE * num_images
    asyncio.run(asyncio.wait_for(draw(), timeout))
  # A browser can fail in many ways; the HTML pages do not need it.
  except Exception as error:  # pylint: disable=broad-exception-caught
    reason = str(next(iter(error.args), '')).strip().partition('\n')[0]
    return (
        'no static images: they need Chrome or Chromium; install one (apt-get'
        ' install chromium, or kaleido_get_chrome), or set BROWSER_PATH to'
        f' yours. {type(error).__name__}: {reason.partition(". ")[0]}'
    )
  return None

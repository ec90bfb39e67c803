"""A figure asks the store of finished runs once, which reads no file twice."""

import collections
import pathlib
import sys
import types
from typing import Any

import pytest

from modular_hyperteacher import untrusted
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.paper import fig3b
from tests.helpers import made_up

_FOLDER = 'fig3b/laptop'


def _entered(library: data.Library) -> list[str]:
  """Returns the functions of the store that drawing Figure 3B calls."""
  calls = []

  def note(frame: types.FrameType, event: str, argument: Any) -> None:
    del argument
    caller = frame.f_back
    if (
        event == 'call'
        and frame.f_code.co_filename == data.__file__
        and caller is not None
        and caller.f_code.co_filename != data.__file__
    ):
      calls.append(frame.f_code.co_name)

  sys.setprofile(note)
  try:
    fig3b.draw(library)
  finally:
    sys.setprofile(None)
  return calls


@pytest.mark.parametrize('kind', ['runs', 'bundle'])
def test_drawing_figure_3b_enters_the_store_once(
    kind: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  runs, bundled, nothing = (tmp_path / name for name in ('a', 'b', 'c'))
  made_up.write_runs(runs, made_up.AS_CLAIMED)
  bundles.write_bundle(runs / _FOLDER, bundled / _FOLDER)
  opened: collections.Counter[str] = collections.Counter()
  read_bytes = untrusted.read_bytes

  def count(path: pathlib.Path) -> bytes | None:
    opened[str(path.relative_to(tmp_path))] += 1
    return read_bytes(path)

  monkeypatch.setattr(untrusted, 'read_bytes', count)
  roots = (runs, nothing) if kind == 'runs' else (nothing, bundled)
  library = data.Library(*roots)
  if kind == 'bundle':
    files = {f'b/{_FOLDER}/{n}' for n in ('provenance.json', 'results.csv.gz')}
  else:
    files = {
        str(path.parent.relative_to(tmp_path) / name)
        for path in runs.glob('*/*/*/summary.json')
        for name in ('config.json', 'provenance.json', 'summary.json')
    }
  assert opened == dict.fromkeys(files, 1)
  assert _entered(library) == ['values']
  # Again, as another figure of this experiment would.
  assert _entered(library) == ['values']
  assert opened == dict.fromkeys(files, 1)

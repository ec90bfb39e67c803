"""The website of the documentation."""

import pathlib

import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.figures.report import site


def test_an_installed_package_has_no_pages(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.setattr(site, '_ROOT', tmp_path)
  with pytest.raises(errors.UserError, match='run it in a clone'):
    site.write_docs(tmp_path / 'site', 'index.html')
  assert not list(tmp_path.iterdir())

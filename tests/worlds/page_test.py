"""The code in docs/library.md, run from top to bottom as a user would."""

import os
import pathlib
import re

import pytest

from tests.helpers import commands

_PAGE = (commands.ROOT / 'docs' / 'library.md').read_text()
_BLOCKS = re.findall(r'```(python|sh)\n(.*?)```', _PAGE, re.S)
_ELSEWHERE = 'figures.make_all'  # Other tests run it.


@pytest.mark.slow
def test_the_page_on_the_library_works(tmp_path: pathlib.Path) -> None:
  printed = []
  for language, code in _BLOCKS:
    for part in [code] if language == 'python' else code.splitlines():
      if _ELSEWHERE in part:
        continue
      arguments = ['-c', part] if language == 'python' else part.split()[1:]
      result = commands.python(*arguments, cwd=tmp_path)
      assert result.returncode == 0, result.stderr
      printed.append(result.stdout)
  assert len(printed) == 6
  assert printed[0] == '(32, 8)\n'  # A trained model's outputs.
  assert "{'accuracy':" in printed[1]
  assert '| my_learner | goals | random | ood |' in printed[-1]


def test_files_that_the_page_names_exist() -> None:
  links = re.findall(r'\]\(([^)#]+)', _PAGE)
  folder = commands.ROOT / 'docs'
  assert links and all(os.path.exists(folder / link) for link in links)

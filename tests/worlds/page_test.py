"""The code in docs/worlds.md, run from top to bottom as a user would."""

import os
import pathlib
import re

import pytest

from tests.helpers import commands

_PAGE = (commands.ROOT / 'docs' / 'worlds.md').read_text()
_BLOCKS = re.findall(r'```(python|sh)\n(.*?)```', _PAGE, re.S)
# What other tests run, or what takes minutes.
_ELSEWHERE = ('figures/make_all.py', 'examples/')


@pytest.mark.slow
def test_the_page_on_worlds_works(tmp_path: pathlib.Path) -> None:
  printed = []
  for language, code in _BLOCKS:
    if any(name in code for name in _ELSEWHERE):
      continue
    for part in [code] if language == 'python' else code.splitlines():
      arguments = ['-c', part] if language == 'python' else part.split()[1:]
      result = commands.python(*arguments, cwd=tmp_path)
      assert result.returncode == 0, result.stderr
      printed.append(result.stdout)
  assert len(printed) == 5
  assert "{'accuracy':" in printed[0]
  assert '| my_learner | goals | random | ood |' in printed[-1]


def test_files_that_the_page_names_exist() -> None:
  links = re.findall(r'\]\(([^)#]+)', _PAGE)
  folder = commands.ROOT / 'docs'
  assert links and all(os.path.exists(folder / link) for link in links)

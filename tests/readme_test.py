"""The README's table says what is bundled, its code does what it says."""

import re

import numpy as np
import pytest

from figures import claims
from figures import readme
from modular_hyperteacher import errors
from modular_hyperteacher import flops


def test_the_table_is_the_one_that_is_written():
  """If this fails: python figures/readme.py."""
  text = readme.PATH.read_text()
  assert readme.replace_table(text) == text


def test_every_claim_has_its_row(monkeypatch):
  monkeypatch.setattr(flops, 'outer_step', lambda config: 1e12)
  rows = readme.make_table().splitlines()
  for claim in claims.CLAIMS:
    (row,) = [r for r in rows if r.startswith(f'| {claim.id} (')]
    assert claim.sentence in row
  assert len({row.count(' | ') for row in rows}) == 1
  # 8 runs of 3 seeds and 200,000 steps of a second each.
  row = next(row for row in rows if '3B-1' in row)
  seeds = 3
  assert f'{8 * seeds * 200_000 * 1e12:.1e} FLOP' in row


def test_a_text_without_a_place_for_it_is_refused():
  with pytest.raises(errors.UserError, match='lacks the lines'):
    readme.replace_table('# A title')


@pytest.mark.slow
def test_the_python_in_it_does_what_its_comments_say():
  text = readme.PATH.read_text()
  (source,) = re.findall('```python\n(.*?)```', text, re.DOTALL)
  names = {}
  exec(source, names)  # pylint: disable=exec-used
  student, fast_params = names['student'], names['fast_params']
  score = student.score(fast_params, names['task'].query)
  (accuracy,) = re.findall(r'# accuracy (\S+)', source)
  assert float(score['accuracy']) == pytest.approx(float(accuracy), abs=0.05)
  modules = re.findall(r'\d+', re.search('# modules (.*)', source)[1])
  active = np.flatnonzero(names['task'].latent)
  assert active.tolist() == list(map(int, modules))
  decoded = student.fit_decoder()(fast_params)[0]
  told = [float(x) for x in re.findall(r'0\.\d\d(?=,|;)', source)]
  np.testing.assert_allclose(decoded[active], told, atol=0.05)
  assert (np.delete(decoded, active) < 0.3).all()

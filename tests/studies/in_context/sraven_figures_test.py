"""Figures and claims of sRAVEN, from made-up results and from none."""

import pathlib
from typing import Any

import pandas as pd
import pytest

from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.studies.in_context import ambiguity
from modular_hyperteacher.studies.in_context import naming
from modular_hyperteacher.studies.in_context.figures import sraven
from tests.helpers import made_up
from tests.helpers import results

# (attention, heads, features, split, metric) -> value.
_Values = dict[tuple[str, int, int, str, str], float]
_IDS = ('HY-9', 'HY-11', 'HY-12', 'HY-14')
_FIRST, _LAST = (naming.RULES.metric(block) for block in (0, 2))


def _expected() -> _Values:
  """Returns results as the paper describes them."""
  accuracies = {'softmax': 0.56, 'linear': 0.55, 'hyla': 0.7}
  found = {
      (kind, 8, 2, 'ood', sraven.METRIC): value
      for kind, value in accuracies.items()
  }
  for kind in ('softmax', 'hyla'):
    found[kind, 1, 2, 'ood', sraven.METRIC] = 0.3
    found[kind, 8, 3, 'ood', sraven.METRIC] = 0.4
    for metric, value in (
        (_FIRST, 0.2),
        (_LAST, 0.6),
        (naming.RULES.majority, 0.05),
    ):
      found[kind, 8, 2, sraven.UNPERMUTED, metric] = value
  return found


def _frame(values: _Values) -> pd.DataFrame:
  """Returns results with three seeds that differ little."""
  return pd.DataFrame([
      {
          **sraven.make_cell(kind, heads, features),
          'model.name': 'transformer',
          'run_id': f'{kind}-{heads}-{features}',
          'split': split,
          'metric': metric,
          'kind': 'last',
          'seed': seed,
          'value': value + 0.003 * seed * (1 + len(kind) % 3),
      }
      for (kind, heads, features, split, metric), value in values.items()
      for seed in range(3)
  ])


def _holds(claim_id: str, frame: pd.DataFrame) -> bool:
  claim = results.claim(claim_id)
  compared = list(claim.compare(frame))
  assert compared
  return all(c.interval[0] > c.bound for c in compared)


@pytest.mark.parametrize('claim_id', _IDS)
def test_claims_hold_for_what_they_say(claim_id: str) -> None:
  assert _holds(claim_id, _frame(_expected()))


@pytest.mark.parametrize(
    'claim_id, changed',
    [
        ('HY-9', {('linear', 8, 2, 'ood', sraven.METRIC): 0.8}),
        ('HY-11', {('hyla', 1, 2, 'ood', sraven.METRIC): 0.8}),
        ('HY-12', {('softmax', 8, 3, 'ood', sraven.METRIC): 0.6}),
        ('HY-14', {('hyla', 8, 2, sraven.UNPERMUTED, _LAST): 0.1}),
        ('HY-14', {('softmax', 8, 2, sraven.UNPERMUTED, _FIRST): 0.7}),
    ],
)
def test_claims_fail_otherwise(claim_id: str, changed: _Values) -> None:
  assert not _holds(claim_id, _frame(_expected() | changed))


def test_without_runs_nothing_is_claimed(tmp_path: pathlib.Path) -> None:
  library = results.library(tmp_path)
  judged = [c for c in claims.known() if c.id in _IDS]
  assert len(judged) == len(_IDS)
  for claim in judged:
    entry = verdicts.evaluate(claim, library)
    assert entry['verdict'] == verdicts.NOT_RUN


def test_claims_take_the_size_of_the_runs() -> None:
  """The published one has 16 heads and four features."""
  published: _Values = {
      (kind, 2 * heads, 4, split, metric): value
      for (kind, heads, features, split, metric), value in _expected().items()
      if (heads, features) == (8, 2)
  }
  published |= {
      (kind, 16, 4, sraven.UNPERMUTED, naming.RULES.metric(3)): value
      for kind, value in (('softmax', 0.5), ('hyla', 0.1))
  }
  frame = _frame(published)
  assert _holds('HY-9', frame)
  assert naming.RULES.num_blocks(frame) == 4
  assert not _holds('HY-14', frame)


@pytest.mark.parametrize('name', ['sraven', 'sraven_decoding'])
def test_figures_name_missing_runs(name: str, tmp_path: pathlib.Path) -> None:
  figure, table = registry.figures()[name].make(results.library(tmp_path))
  assert 'no run' in made_up.texts(figure)
  assert len(table) == 7 and (table['num_seeds'] == 0).all()


def test_ambiguous_shares_are_what_the_code_measures(
    tmp_path: pathlib.Path,
) -> None:
  stored = ambiguity.MEASURED.load()
  sizes: Any = ambiguity.CELL
  stored = stored.set_index([*sizes, 'seed', 'metric'])['value']
  again = ambiguity.measure(2, 8, 0)
  for name, value in again.items():
    assert stored[2, 8, 0, name] == pytest.approx(value, rel=1e-5)
  library = results.library(tmp_path)
  found = {
      claim.id: verdicts.evaluate(claim, library)['verdict']
      for claim in claims.known()
      if claim.id.startswith('HY-16')
  }
  assert found == {'HY-16': 'SUPPORTED', 'HY-16x': 'CONTRADICTED'}

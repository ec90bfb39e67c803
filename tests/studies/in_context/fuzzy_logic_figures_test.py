"""Figures and claims of fuzzy logic, from made-up results and from none."""

import pathlib

import pandas as pd
import pytest

from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.studies.in_context import naming
from modular_hyperteacher.studies.in_context.claims import (
    fuzzy_logic as fuzzy_logic_claims,
)
from modular_hyperteacher.studies.in_context.figures import fuzzy_logic
from tests.helpers import made_up
from tests.helpers import results

_NAMES = ('fuzzy_logic', 'fuzzy_logic_a1', 'fuzzy_logic_decoding')
# R2 of every claim's world: attention -> (seen, OOD).
_BETTER = {'hyla': 0.8, 'softmax': 0.6, 'linear': 0.55}


def _frame(r2: dict[tuple[str, int, float, str], float]) -> pd.DataFrame:
  """Returns results with three seeds that differ little."""
  rows = [
      {
          **fuzzy_logic.make_cell(kind, num_tokens, fraction),
          'model.name': 'transformer',
          'run_id': f'{kind}-{num_tokens}-{fraction}',
          'split': split,
          'metric': fuzzy_logic.METRIC,
          'kind': 'last',
          'seed': seed,
          'value': value + 0.003 * seed * (1 + len(kind) % 3),
      }
      for (kind, num_tokens, fraction, split), value in r2.items()
      for seed in range(3)
  ]
  return pd.DataFrame(rows)


def _published(hyla: float = 0.8) -> dict[tuple[str, int, float, str], float]:
  """Returns R2 as the text describes it, with this OOD R2 of HYLA."""
  found = {}
  for kind, ood in (_BETTER | {'hyla': hyla}).items():
    for num_tokens in (16, 32):
      for fraction in (0.3, 0.5, 0.7):
        steepness = 0.2 if kind == 'hyla' else 0.6
        r2 = ood + steepness * (0.7 - fraction) - 0.01 * (32 - num_tokens)
        found[kind, num_tokens, fraction, 'ood'] = r2
    found[kind, 32, 0.7, 'test'] = 0.95
    found[kind, 32, 0.7, 'ood_unknown_terms'] = 0.2
  for kind in fuzzy_logic_claims._ABLATIONS:
    found[kind, 32, 0.7, 'ood'] = 0.7
  return found


def _holds(claim_id: str, r2: dict[tuple[str, int, float, str], float]) -> bool:
  claim = results.claim(claim_id)
  compared = list(claim.compare(_frame(r2)))
  assert compared
  return all(c.interval[0] > c.bound for c in compared)


_IDS = ('HY-2', 'HY-3', 'HY-4', 'HY-5', 'HY-6', 'HY-7')
_TRAINED = (*_IDS, 'HY-8')


@pytest.mark.parametrize('claim_id', _IDS)
def test_claims_hold_for_what_they_say(claim_id: str) -> None:
  assert _holds(claim_id, _published())


@pytest.mark.parametrize(
    'claim_id, changed',
    [
        ('HY-2', {('softmax', 32, 0.7, 'ood'): 0.9}),
        ('HY-3', {('hyla', 16, 0.3, 'ood'): 1.2}),
        ('HY-4', {('linear', 16, 0.7, 'ood'): 0.6}),
        ('HY-5', {('linear', 32, 0.7, 'test'): 0.8}),
        ('HY-6', {('hyla', 32, 0.7, 'ood_unknown_terms'): 0.6}),
        ('HY-7', {('hyla_no_rms_head', 32, 0.7, 'ood'): 0.85}),
    ],
)
def test_claims_fail_otherwise(
    claim_id: str, changed: dict[tuple[str, int, float, str], float]
) -> None:
  assert not _holds(claim_id, _published() | changed)


def _f1(scores: dict[str, tuple[float, ...]]) -> pd.DataFrame:
  """Returns F1 of both blocks and of the most frequent term, by kind."""
  metrics = (*map(naming.TERMS.metric, range(2)), naming.TERMS.majority)
  parts = []
  for kind, values in scores.items():
    for metric, value in zip(metrics, values):
      part = _frame({(kind, 32, 0.7, 'ood_fixed_context'): value})
      # Seeds of the blocks differ by more than those of the majority.
      spread = 0.001 * len(metric) * part['seed']
      parts.append(part.assign(metric=metric, value=value + spread))
  frame = pd.concat(parts, ignore_index=True)
  return frame.assign(
      preset='laptop', condition=frame['run_id'], published_scale=False
  )


@pytest.mark.parametrize(
    'scores, verdict',
    [
        ({'hyla': (0.1, 0.6, 0.05), 'softmax': (0.5, 0.1, 0.05)}, 'SUPPORTED'),
        (
            {'hyla': (0.1, 0.6, 0.05), 'softmax': (0.2, 0.1, 0.05)},
            verdicts.CONTRADICTED,
        ),
        (
            {'hyla': (0.1, 0.2505, 0.05), 'softmax': (0.5, 0.1, 0.05)},
            verdicts.UNDECIDED,
        ),
        ({'hyla': (0.1, 0.6, 0.05)}, verdicts.NOT_RUN),
    ],
)
def test_terms_named_from_codes(
    scores: dict[str, tuple[float, ...]], verdict: str
) -> None:
  """HY-8 asks it of the better block, for both kinds of attention."""
  claim = results.claim('HY-8')
  found = list(claim.compare(_f1(scores)))
  assert len(found) == 2
  assert verdicts.judge(found, fuzzy_logic.CELL).verdict == verdict


def test_without_codes_terms_are_not_judged() -> None:
  claim = results.claim('HY-8')
  found = claim.compare(_frame(_published()))
  assert verdicts.judge(found, fuzzy_logic.CELL).verdict == verdicts.NOT_RUN


def test_without_runs_nothing_is_claimed(
    tmp_path: pathlib.Path,
) -> None:
  library = results.library(tmp_path)
  trained = [claim for claim in claims.known() if claim.id in _TRAINED]
  assert len(trained) == len(_TRAINED)
  for claim in trained:
    assert verdicts.evaluate(claim, library)['verdict'] == verdicts.NOT_RUN


@pytest.mark.parametrize('name', _NAMES)
def test_figures_name_missing_runs(name: str, tmp_path: pathlib.Path) -> None:
  figure, table = registry.figures()[name].make(results.library(tmp_path))
  assert 'no run' in made_up.texts(figure)
  assert len(table) == 17 and (table['num_seeds'] == 0).all()

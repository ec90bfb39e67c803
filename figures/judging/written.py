"""Verdicts as files and tables: claims.json and claims.md."""

from collections.abc import Mapping, Sequence
import json
from typing import Any

import pandas as pd

from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.plotting import tables

RULE = (
    'SUPPORTED: every comparison of the claim holds, by a one-sided paired t'
    ' test over seeds at 5%. CONTRADICTED: at least one is significantly'
    " reversed (at 5%, with Holm's correction for their number). UNDECIDED:"
    ' neither. NOT RUN: a run is missing. Numbers are of the comparison with'
    ' the largest one-sided p.'
)


def write(entries: Sequence[verdicts.Entry]) -> dict[str, str]:
  """Returns the files that report claims, name -> text."""
  summary = pd.DataFrame([
      {
          'id': entry['id'],
          'artefact': entry['artefact'],
          'claim': entry['sentence'],
          'verdict': entry['verdict'],
          **_columns(entry),
          'preset': entry['preset'],
          'note': entry['note'],
      }
      for entry in entries
  ])
  details = pd.DataFrame([
      {'id': entry['id'], **row}
      for entry in entries
      for row in comparison_rows(entry)
  ])
  return {
      'claims.json': json.dumps(entries, indent=2, allow_nan=False) + '\n',
      'claims.md': (
          f'{tables.to_markdown(summary)}\n{RULE}\n\nAll'
          f' comparisons:\n\n{tables.to_markdown(details)}'
      ),
  }


def comparison_rows(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
  """Returns a row per comparison of an entry of claims.json."""
  return [
      {
          'comparison': tested['name'],
          'to exceed': tested['bound'],
          **_columns(tested),
          'result': _result(tested),
      }
      for tested in entry['comparisons']
  ]


def _result(tested: verdicts.Tested) -> str:
  if tested['holds']:
    return 'holds'
  return 'reversed' if tested['reversed'] else 'undecided'


def _columns(numbers: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the columns of an entry's or a comparison's numbers."""
  low, high = numbers['interval'] or (None, None)
  return {
      'effect_mean': numbers['effect'],
      'effect_se': numbers['standard_error'],
      '90% from': low,
      'to': high,
      't': numbers['t'],
      'p': numbers['p'],
      'seeds': numbers['num_seeds'],
  }

"""Text of each claim on the page, and its mark in the overview picture."""

import collections
from collections.abc import Mapping, Sequence
import math
import pathlib
import re
from typing import Any

import pandas as pd

from modular_hyperteacher.figures.judging import students
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.judging import written
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.figures.plotting import tables

_FOLDER = pathlib.Path(__file__).parent
# Why claims are not supported by the bundled results, or only with a caveat.
EXPLANATIONS = _FOLDER / 'explanations.csv'
_TABLE: Any = pd.read_csv(_FOLDER / 'findings.csv', index_col='artefact')
# Part of the paper -> what it says, 'published', what bundled results say,
# 'here', and where docs/ has the evidence, 'page'. `readme.py` fills in the
# numbers of 'here'.
FINDINGS: Mapping[str, Mapping[str, str]] = _TABLE.to_dict('index')
# Shapes repeat what colours say, for readers who cannot tell colours apart.
SYMBOLS = {
    'SUPPORTED': '●',
    'CONTRADICTED': '■',
    'UNDECIDED': '◇',
    'NOT RUN': '✕',
}
_VARIANTS = ('-adam', 'TH-1-d')  # They do not count as claims of their own.
_NARROW = 0.02  # A supported claim's p above which it is named.
_EDGE = 30.0  # Marks beyond this are drawn at the edge.
TICKS = (-30, -10, -3, 0, 3, 10, 30)

_GROUPS = {'hypernetworks': style.HYPERNETWORKS, 'others': style.MONOLITHIC}
# A claim, and its entry of claims.json.
Judged = tuple[verdicts.Claim, verdicts.Entry]


def describe(entry: Mapping[str, Any]) -> dict[str, Any]:
  """Returns what the templates show of a claim.

  These are the fields of its entry of claims.json, with a table of its
  comparisons, and further ones. Its mark in the picture lies at 'x', and the
  interval from 'low' to 'high', or None, in percent of the picture's width.
  """
  return {
      **entry,
      'kind': kind(entry['verdict']),
      'symbol': SYMBOLS[entry['verdict']],
      'measured': _measured(entry),
      'why': _why(entry),  # It is not supported, or its caveat; else empty.
      'scale': entry['preset'] or '',
      'comparisons': tables.texts(pd.DataFrame(written.comparison_rows(entry))),
      **_mark(entry),
  }


def kind(verdict: str) -> str:
  """Returns the CSS class of a verdict."""
  return verdict.lower().replace(' ', '-')


def _mark(entry: Mapping[str, Any]) -> dict[str, float | None]:
  """Returns where a mark is drawn; in the middle if there are no numbers."""
  t, error = entry['t'] or 0.0, entry['standard_error']
  low = high = None
  if error and entry['interval']:
    low, high = (
        position(t + (end - entry['effect']) / error)
        for end in entry['interval']
    )
  return {'x': position(t), 'low': low, 'high': high}


def position(t: float) -> float:
  """Returns the position of a t value: nearly linear up to 3, then log."""
  share = math.asinh(t) / math.asinh(_EDGE)
  return round(50 + 47 * max(-1.0, min(1.0, share)), 2)


def count(judged: Sequence[Judged]) -> list[dict[str, Any]]:
  """Returns how many claims have each verdict."""
  counts = collections.Counter(entry['verdict'] for _, entry in judged)
  return [
      {'verdict': verdict, 'kind': kind(verdict), 'number': counts[verdict]}
      for verdict in SYMBOLS
      if verdict in counts
  ]


def rows(
    judged: Sequence[Judged], described: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
  """Returns a row per figure or table of the paper that claims something.

  Its claims are without those of another solver; 'figure' shows them.
  """
  table = []
  for artefact, finding in FINDINGS.items():
    of_artefact = [c for c, _ in judged if c.artefact == artefact]
    kept = [
        described[c.id] for c in of_artefact if not c.id.endswith(_VARIANTS)
    ]
    if kept:
      table.append({
          'artefact': artefact,
          'published': finding['published'],
          'claims': kept,
          'figure': of_artefact[0].figure,
      })
  return table


def summarise(judged: Sequence[Judged]) -> str:
  """Returns how many of the paper's claims hold, and which only narrowly."""
  of_paper = [
      entry
      for claim, entry in judged
      if claim.artefact in FINDINGS and not claim.id.endswith(_VARIANTS)
  ]
  counted = collections.Counter(entry['verdict'] for entry in of_paper)
  counts = [f'{counted[verdict]} {verdict}' for verdict in verdicts.VERDICTS]
  narrow = [
      entry['id']
      for entry in of_paper
      if entry['verdict'] == 'SUPPORTED' and (entry['p'] or 0) > _NARROW
  ]
  named = f' Supported with p above {_NARROW:g}: {", ".join(narrow)}.'
  return (
      f"Of the paper's {len(of_paper)} claims, {', '.join(counts)} (not"
      f' counted: TH-1-d, and claims on Adam).{named if narrow else ""}'
  )


def found_here(
    artefact: str, library: data.Library, judged: Sequence[Judged]
) -> str:
  """Returns the finding on a part of the paper, with its numbers.

  In `FINDINGS`, '{min hypernetworks fig3b random accuracy}' stands for the
  lower of two means, and '{A10}' for the size of this claim's effect.
  """
  effects = {c.id: abs(entry['effect'] or 0) for c, entry in judged}

  def number(match: re.Match[str]) -> str:
    words = match[1].split()
    value = effects[words[0]] if len(words) == 1 else _level(library, *words)
    return f'{value:.3f}'

  return re.sub('{(.*?)}', number, FINDINGS[artefact]['here'])


def _level(
    library: data.Library,
    end: str,
    group: str,
    experiment: str,
    task_support: str,
    metric: str,
) -> float:
  """Returns the lowest or highest mean of some models on OOD tasks.

  Means are at the last step. A group is a model or one of `_GROUPS`; an
  experiment can have a preset, 'fig3c:desktop'.
  """
  name, _, preset = experiment.partition(':')
  shared = students.best_widths(
      library.values(name, preset or None),
      [*style.HYPERNETWORKS, *style.MONOLITHIC],
      {students.SUPPORT: task_support},
      metric,
  )
  means = shared.mean().reindex(_GROUPS.get(group, (group,)))
  return float(means.min() if end == 'min' else means.max())


def _measured(entry: Mapping[str, Any]) -> str:
  effect = tables.with_error(entry['effect'], entry['standard_error'])
  if not effect:
    return ''
  bound = entry['bound']
  details = [f'must exceed {bound:g}'] if bound else []
  if entry['interval']:
    low, high = map(tables.number, entry['interval'])
    details.append(f'90% interval {low} to {high}')
  details += [
      f'{name} = {tables.number(entry[name])}'
      for name in ('t', 'p')
      if entry[name] is not None
  ]
  inner = f' ({", ".join(details)})' if details else ''
  scale = f'{entry["preset"]}{" scale" * (entry["preset"] != "constructed")}'
  seeds = f'{entry["num_seeds"]} seed{"s" * (entry["num_seeds"] != 1)}'
  return f'{effect}{inner}, {seeds}, {scale}.'


def _why(entry: Mapping[str, Any]) -> str:
  """Returns the explanation of a verdict on the bundled results, if any."""
  if entry['source'] == 'own':
    return ''
  key = ['id', 'preset', 'verdict']
  why = pd.read_csv(EXPLANATIONS, index_col=key)['why']
  return str(why.get((entry['id'], entry['preset'], entry['verdict']), ''))

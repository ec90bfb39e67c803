"""One page with all figures, claims and configs, in a single file.

It includes plotly's script, the figures' data and the tables, so it works
without a network and can be mailed.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
import html
import json
import pathlib
from typing import Any, NamedTuple

import pandas as pd
from plotly import offline
import plotly.graph_objects as go

from figures import registry
from figures.claims import verdicts
from figures.library import data
from figures.plotting import layout
from figures.plotting import tables

_FOLDER = pathlib.Path(__file__).parent
_CONFIGS = _FOLDER.parents[1] / 'configs'
# Why claims are not supported by the bundled results.
EXPLANATIONS = _FOLDER / 'explanations.csv'
# Blocks that experiments share.
_SHARED_CONFIGS = tuple(
    f'blocks/{path.stem}' for path in sorted(_CONFIGS.glob('blocks/[a-z]*.py'))
)
_MAX_ROWS = 120  # Of a table on the page; the CSV file has all.
_TRAIN = 'python -m modular_hyperteacher.main --config=configs'
_SYMBOLS = {
    'SUPPORTED': '✓',
    'CONTRADICTED': '✗',
    'UNDECIDED': '?',
    'NOT RUN': '–',
}


class Drawn(NamedTuple):
  """A figure and its numbers."""

  figure: go.Figure | None
  table: pd.DataFrame


_Verdicts = Sequence[tuple[verdicts.Claim, verdicts.Entry]]


def make(
    drawn: Mapping[str, Drawn],
    claims: Sequence[verdicts.Claim],
    entries: Sequence[verdicts.Entry],
    library: data.Library,
) -> str:
  """Returns the page.

  Args:
    drawn: name -> figure, for some or all of `registry.FIGURES`.
    claims: all claims.
    entries: one per claim, from `verdicts.evaluate`.
    library: the finished runs behind the figures.
  """
  judged = list(zip(claims, entries, strict=True))
  parts = [_summary(drawn, judged, library)]
  for heading, figures in registry.SECTIONS.items():
    names = [name for name in figures if name in drawn]
    if names:
      parts.append(f'<h2 id="{_anchor(heading)}">{heading}</h2>')
      parts += [_article(name, drawn[name], judged, library) for name in names]
  parts += [_discrepancies(), _configs(drawn)]
  return _PAGE.format(
      style=(_FOLDER / 'report.css').read_text(),
      body='\n'.join(parts),
      plotly=offline.get_plotlyjs(),
      script=(_FOLDER / 'report.js').read_text(),
  )


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Discovering modular solutions that generalize compositionally:
a reproduction</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#summary">Skip to the summary</a>
<main>
{body}
</main>
<script>{plotly}</script>
<script>
{script}</script>
</body>
</html>
"""


def _summary(
    drawn: Mapping[str, Drawn], judged: _Verdicts, library: data.Library
) -> str:
  counts = collections.Counter(entry['verdict'] for _, entry in judged)
  total = ', '.join(f'{counts[name]} {name}' for name in _SYMBOLS)
  rows = ''.join(_summary_row(claim, e, drawn) for claim, e in judged)
  stale = ''.join(f'<li>{_text(run)}</li>' for run in library.stale())
  links = [
      f'<a href="#{_anchor(heading)}">{heading}</a>'
      for heading, figures in registry.SECTIONS.items()
      if set(figures) & set(drawn)
  ]
  links += [
      '<a href="#discrepancies">Where paper and code differ</a>',
      '<a href="#configs">Configs</a>',
  ]
  notice = (
      '<div class="stale"><p>Bundled results that no current config'
      f' describes:</p><ul>{stale}</ul></div>'
  )
  return (
      '<h1>Discovering modular solutions that generalize compositionally: a'
      ' reproduction</h1>\n'
      f'<nav aria-label="Sections">{" · ".join(links)}</nav>\n'
      f'<h2 id="summary">Summary</h2>\n<p>Claims: {total}. Every number says at'
      ' which scale it was measured; <em>laptop</em> is a scaled-down problem,'
      ' to be compared with the paper in direction only, and <em>paper</em>'
      ' the published one.</p>\n'
      f'{notice if stale else ""}'
      '<div class="scroll" tabindex="0" role="region" aria-label="All claims">'
      '<table><thead><tr><th scope="col">claim</th><th scope="col">sentence'
      '</th><th scope="col">verdict</th><th scope="col">effect'
      '</th><th scope="col">seeds</th><th scope="col">scale</th></tr></thead>\n'
      f'<tbody>{rows}</tbody></table></div>\n<p>{_text(verdicts.RULE)}</p>'
  )


def _summary_row(
    claim: verdicts.Claim, entry: verdicts.Entry, drawn: Mapping[str, Drawn]
) -> str:
  name = _text(claim.id)
  if claim.figure in drawn:
    name = f'<a href="#{claim.figure}">{name}</a>'
  effect = tables.with_error(entry['effect'], entry['standard_error'])
  return (
      f'<tr><th scope="row">{name}</th><td>{_text(claim.sentence)}</td>'
      f'<td>{_verdict(entry)}</td><td>{effect}</td>'
      f'<td>{entry["num_seeds"]}</td><td>{_text(entry["preset"] or "")}</td>'
      '</tr>\n'
  )


def _article(
    name: str, drawn: Drawn, judged: _Verdicts, library: data.Library
) -> str:
  figure = registry.FIGURES[name]
  claims = ''.join(
      _claim(claim, entry) for claim, entry in judged if claim.figure == name
  )
  shown = drawn.table.head(_MAX_ROWS)
  more = (
      ''
      if len(shown) == len(drawn.table)
      else (
          f'<p>The first {len(shown)} of {len(drawn.table)} rows; all are in'
          f' {name}.csv.</p>'
      )
  )
  numbers = (
      '<div class="scroll" tabindex="0" role="region"'
      f' aria-label="Numbers of {_text(figure.title)}">'
      f'{tables.to_html(shown)}</div>{more}'
  )
  if drawn.figure is not None:
    numbers = f'<details><summary>The numbers</summary>{numbers}</details>'
  return (
      f'<article id="{name}" aria-labelledby="{name}-title">\n'
      f'<h3 id="{name}-title">{_text(figure.title)}</h3>\n'
      f'{claims}{_plot(name, drawn.figure)}{numbers}\n'
      f'{"".join(_facts(e, library) for e in figure.experiments)}</article>'
  )


def _claim(claim: verdicts.Claim, entry: verdicts.Entry) -> str:
  effect = tables.with_error(entry['effect'], entry['standard_error'])
  measured = (
      f' {effect}, {entry["num_seeds"]} seeds, {entry["preset"]} scale.'
      if effect
      else ''
  )
  return (
      f'<div class="claim {entry["verdict"].replace(" ", "-")}">'
      f'<p><strong>{_text(claim.id)}.</strong> {_text(claim.sentence)}</p>'
      f'<p>{_verdict(entry)}{_text(measured)}</p>'
      f'<p class="note">{_text(entry["note"])}</p>{_explanation(entry)}</div>\n'
  )


def _explanation(entry: verdicts.Entry) -> str:
  """Returns why a claim is not supported, for the results explained."""
  why = pd.read_csv(EXPLANATIONS, index_col=['id', 'preset'])['why']
  key: Any = entry['id'], entry['preset']
  if entry['verdict'] == verdicts.SUPPORTED or key not in why:
    return ''
  return f'<p class="why"><strong>Why:</strong> {_text(why[key])}</p>'


def _verdict(entry: verdicts.Entry) -> str:
  verdict = entry['verdict']
  return f'<span class="verdict">{_SYMBOLS[verdict]} {verdict}</span>'


def _plot(name: str, figure: go.Figure | None) -> str:
  """Returns the element that report.js draws into, its data and its caption."""
  if figure is None:
    return ''
  figure_layout: Any = figure.layout
  lines = (figure_layout.meta or {}).get(layout.CAPTION, [])
  caption = ''.join(f'<p>{line}</p>' for line in lines)
  title = _text(registry.FIGURES[name].title)
  # '</' would end the script element.
  content = json.dumps(_for_page(figure)).replace('</', '<\\/')
  return (
      '<figure><div class="scroll" tabindex="0" role="region"'
      f' aria-label="Chart: {title}"><div class="plot" id="{name}-plot"'
      f' role="img" aria-label="{title}. Its numbers are in the table that'
      ' follows."></div></div>'
      f'<script type="application/json" id="{name}-plot-data">{content}'
      '</script>'
      f'<figcaption>{caption}</figcaption></figure>\n'
  )


def _for_page(figure: go.Figure) -> dict[str, Any]:
  """Returns a figure as wide as the page, without title and caption."""
  figure = go.Figure(figure)
  figure_layout: Any = figure.layout
  figure_layout.annotations = [
      note for note in figure_layout.annotations if note.name != layout.CAPTION
  ]
  margin = figure_layout.margin
  bottom, top = 75, 70
  if figure_layout.height and margin.b is not None and margin.t is not None:
    figure_layout.height += bottom - margin.b + top - margin.t
  figure.update_layout(
      title=None,
      width=None,
      autosize=True,
      meta=None,
      margin={'t': top, 'b': bottom},
  )
  return json.loads(str(figure.to_json()))


def _facts(experiment: str, library: data.Library) -> str:
  """Returns scale, command, cost and origin of an experiment's runs."""
  frame = library.values(experiment)
  command = f'{_TRAIN}/{experiment}.py'
  link = f'<a href="#config-{experiment}">configs/{experiment}.py</a>'
  if frame.empty:
    facts = {'Runs': 'none finished', 'Command': f'<code>{command}</code>'}
    return _list({**facts, 'Config': link})
  runs = frame.drop_duplicates('run_id')
  preset = runs['preset'].iloc[0]
  suffix = '' if preset == 'laptop' else f':{preset}'
  scale = 'the published scale'
  if not runs['published_scale'].all():
    scale = 'not the published scale'
  return _list({
      'Scale': f'{preset}, {scale}; {len(runs)} runs',
      'Command': f'<code>{command}{suffix}</code>',
      'Cost': _cost(runs),
      'Results': (
          f'{runs["source"].iloc[0]}, of commit'
          f' {_text(", ".join(_commits(runs)))}'
      ),
      'Config': link,
  })


def _commits(runs: pd.DataFrame) -> Iterable[str]:
  """Returns the commits that trained runs, without repetition."""
  return dict.fromkeys(
      commit for text in runs['commit'].unique() for commit in text.split(', ')
  )


def _cost(runs: pd.DataFrame) -> str:
  if runs['wall_s'].isna().any():
    return 'not timed'
  minutes = runs['wall_s'].sum() / 60
  devices = ', '.join(runs['device'].unique())
  hours = f'{minutes:.0f} minutes' if minutes < 600 else f'{minutes / 60:.0f} h'
  if runs['cpu_s'].notna().all():
    hours += f' ({runs["cpu_s"].sum() / 60:.0f} of one processor core)'
  return f'{hours} of training in all, on {_text(devices)}'


def _list(facts: Mapping[str, str]) -> str:
  rows = ''.join(f'<dt>{k}</dt><dd>{v}</dd>' for k, v in facts.items())
  return f'<dl class="facts">{rows}</dl>\n'


def _discrepancies() -> str:
  parts = [
      '<h2 id="discrepancies">Where paper and code differ</h2>\n'
      "<p>The published numbers came out of the authors' code, so where text"
      ' and code differ the code is followed, unless it says otherwise'
      ' here.</p>'
  ]
  for paper, name in (
      ('Schug et al. (2024)', 'discrepancies'),
      ('Lake (2019)', 'discrepancies_seq2seq'),
  ):
    table = tables.to_html(pd.read_csv(_FOLDER / f'{name}.csv'))
    parts.append(
        f'<h3>{paper}</h3>\n<div class="scroll" tabindex="0" role="region"'
        f' aria-label="Discrepancies of {paper}">{table}</div>'
    )
  return '\n'.join(parts)


def _configs(drawn: Iterable[str]) -> str:
  """Returns the source of the configs of some figures."""
  names = dict.fromkeys(
      e for name in drawn for e in registry.FIGURES[name].experiments
  )
  names |= dict.fromkeys(_SHARED_CONFIGS)
  parts = ''.join(
      f'<details id="config-{pathlib.PurePath(name).name}">'
      f'<summary>configs/{name}.py</summary>'
      f'<pre><code>{_text((_CONFIGS / f"{name}.py").read_text())}</code></pre>'
      '</details>\n'
      for name in names
  )
  return f'<h2 id="configs">Configs</h2>\n{parts}'


def _anchor(heading: str) -> str:
  return heading.lower().replace(' ', '-')


def _text(value: Any) -> str:
  return html.escape(str(value))

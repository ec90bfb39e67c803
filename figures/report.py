"""One page with all figures, claims and choices; it needs nothing but itself.

Plotly's script, every figure's data, the tables and the configs are part of the
file, so it can be mailed, works without a network, and looks the same later.
"""

import collections
import html
import json
import pathlib
from typing import Any, NamedTuple, Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly import offline

from figures import data
from figures import layout
from figures import registry
from figures import tables
from figures import verdicts

_FOLDER = pathlib.Path(__file__).parent
_CONFIGS = _FOLDER.parent / 'configs'
# What was found out about claims that fail with the bundled results.
EXPLANATIONS = _FOLDER / 'explanations.csv'
# Blocks that experiments share.
_SHARED_CONFIGS = ('common', 'theory', 'seq2seq')
_MAX_ROWS = 120  # Of a table on the page; the rest is in the CSV file.
_TRAIN = 'python -m modular_hyperteacher.main --config=configs'
_SYMBOLS = {'PASS': '✓', 'FAIL': '✗', 'NOT RUN': '–'}


class Drawn(NamedTuple):
  """A figure as it was drawn."""

  figure: go.Figure | None
  table: pd.DataFrame


def make(
    drawn: dict[str, Drawn],
    claims: Sequence[verdicts.Claim],
    entries: Sequence[dict[str, Any]],
    library: data.Library,
) -> str:
  """Returns the page.

  Args:
    drawn: name -> what `registry.FIGURES[name].draw` returned; a subset of all.
    claims: all claims.
    entries: what `verdicts.evaluate` returned for each of them.
    library: the finished runs that all this was made of.
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


def _summary(drawn, judged, library):
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


def _summary_row(claim, entry, drawn):
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


def _article(name, drawn, judged, library):
  figure = registry.FIGURES[name]
  claims = ''.join(
      _claim(claim, entry) for claim, entry in judged if claim.figure == name
  )
  shown = drawn.table.head(_MAX_ROWS)
  more = '' if len(shown) == len(drawn.table) else (
      f'<p>The first {len(shown)} of {len(drawn.table)} rows; all are in'
      f' {name}.csv.</p>'
  )
  numbers = (
      f'<div class="scroll" tabindex="0" role="region"'
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


def _claim(claim, entry):
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


def _explanation(entry):
  """Returns what was found out about a claim that does not hold."""
  why = pd.read_csv(EXPLANATIONS, index_col=['id', 'preset'])['why']
  place = entry['id'], entry['preset']
  if entry['verdict'] != verdicts.FAIL or place not in why:
    return ''
  return f'<p class="why"><strong>Why:</strong> {_text(why[place])}</p>'


def _verdict(entry):
  verdict = entry['verdict']
  return f'<span class="verdict">{_SYMBOLS[verdict]} {verdict}</span>'


def _plot(name, figure):
  """Returns a figure's place on the page, its data and its caption."""
  if figure is None:
    return ''
  lines = (figure.layout.meta or {}).get(layout.CAPTION, [])
  caption = ''.join(f'<p>{line}</p>' for line in lines)
  title = _text(registry.FIGURES[name].title)
  # Not to end the script element early.
  content = json.dumps(_for_page(figure)).replace('</', '<\\/')
  return (
      f'<figure><div class="scroll" tabindex="0" role="region"'
      f' aria-label="Chart: {title}"><div class="plot" id="{name}-plot"'
      f' role="img" aria-label="{title}. Its numbers are in the table that'
      ' follows."></div></div>'
      f'<script type="application/json" id="{name}-plot-data">{content}'
      '</script>'
      f'<figcaption>{caption}</figcaption></figure>\n'
  )


def _for_page(figure):
  """Returns a figure without what the page itself says, and as wide as it."""
  figure = go.Figure(figure)
  figure.layout.annotations = [
      note for note in figure.layout.annotations if note.name != layout.CAPTION
  ]
  margin = figure.layout.margin
  bottom, top = 75, 70
  if figure.layout.height and margin.b is not None and margin.t is not None:
    figure.layout.height += bottom - margin.b + top - margin.t
  figure.update_layout(
      title=None,
      width=None,
      autosize=True,
      meta=None,
      margin={'t': top, 'b': bottom},
  )
  return json.loads(figure.to_json())


def _facts(experiment, library):
  """Returns where the runs of an experiment come from, and what they cost."""
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
      'Results': f'{runs["source"].iloc[0]}, of commit'
      f' {_text(", ".join(_commits(runs)))}',
      'Config': link,
  })


def _commits(runs):
  """Returns the commits that trained runs, each once."""
  return dict.fromkeys(
      commit for text in runs['commit'].unique() for commit in text.split(', ')
  )


def _cost(runs):
  if runs['wall_s'].isna().any():
    return 'not timed'
  minutes = runs['wall_s'].sum() / 60
  devices = ', '.join(runs['device'].unique())
  hours = f'{minutes:.0f} minutes' if minutes < 600 else f'{minutes / 60:.0f} h'
  if runs['cpu_s'].notna().all():
    hours += f' ({runs["cpu_s"].sum() / 60:.0f} of one processor core)'
  return f'{hours} of training in all, on {_text(devices)}'


def _list(facts):
  rows = ''.join(f'<dt>{k}</dt><dd>{v}</dd>' for k, v in facts.items())
  return f'<dl class="facts">{rows}</dl>\n'


def _discrepancies():
  parts = [
      '<h2 id="discrepancies">Where paper and code differ</h2>\n'
      '<p>The published numbers came out of the authors\' code, so where text'
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


def _configs(drawn):
  """Returns the configs' own text, for a page that has no files beside it."""
  names = dict.fromkeys(
      e for name in drawn for e in registry.FIGURES[name].experiments
  )
  names |= dict.fromkeys(_SHARED_CONFIGS)
  parts = ''.join(
      f'<details id="config-{name}"><summary>configs/{name}.py</summary>'
      f'<pre><code>{_text((_CONFIGS / f"{name}.py").read_text())}</code></pre>'
      '</details>\n'
      for name in names
  )
  return f'<h2 id="configs">Configs</h2>\n{parts}'


def _anchor(heading):
  return heading.lower().replace(' ', '-')


def _text(value):
  return html.escape(str(value))

"""Pages of figures and claims, from the templates beside this file.

`report.html` is a single file: it holds plotly's script, the figures' data and
the tables, so it works without a network and can be mailed. Other pages load
plotly's script from their folder. Script and data are compressed; `report.js`
unpacks them.

Templates escape every string that they are given. As a second defence, the
content security policy of each page allows only `report.js`, by its hash, and
what that script loads.
"""

import base64
from collections.abc import Mapping, Sequence
import dataclasses
import functools
import gzip
import hashlib
import json
import pathlib
import re
from typing import Any, NamedTuple

import jinja2
import markupsafe
import numpy as np
import pandas as pd
from plotly import offline
import plotly.graph_objects as go

from modular_hyperteacher import configs
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.judging import written
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import tables
from modular_hyperteacher.figures.report import overview

_FOLDER = pathlib.Path(__file__).parent
_MAX_ROWS = 10  # On the page; the CSV file has all.
_TITLE = (
    'Discovering modular solutions that generalize compositionally: a'
    ' reproduction'
)
_POLICY = (
    "default-src 'none'; script-src 'sha256-{digest}' 'strict-dynamic';"
    " style-src 'unsafe-inline'; img-src 'self' data: blob:; base-uri 'none';"
    " form-action 'none'"
)
_TRAIN = 'python -m modular_hyperteacher.main'
_LEAD = 'summary'  # The figure that the page opens with.


class Drawn(NamedTuple):
  """A figure and its numbers."""

  figure: go.Figure | None
  table: pd.DataFrame


@dataclasses.dataclass(frozen=True)
class Report:
  """The content of all pages.

  Attributes:
    drawn: name -> figure, for some or all of `registry.figures()`.
    judged: all claims, each with its entry from `verdicts.evaluate`.
    library: the finished runs behind the figures.
  """

  drawn: Mapping[str, Drawn]
  judged: Sequence[overview.Judged]
  library: data.Library

  def page(self, packed: bool = True, links: Sequence[Any] = ()) -> str:
    """Returns the page of all figures and claims.

    Unless it is packed, it loads plotly's script from its folder. Links are
    (address, text) of other pages.
    """
    sections = [
        {
            'heading': heading,
            'anchor': heading.lower().replace(' ', '-'),
            'claims': [
                self._described[c.id]
                for c, _ in self.judged
                if c.figure in figures
            ],
            'figures': [self._figures[name] for name in names],
        }
        for heading, figures in registry.sections().items()
        if (names := [n for n in figures if n in self.drawn and n != _LEAD])
    ]
    anchors = [(s['anchor'], s['heading']) for s in sections]
    anchors += [('discrepancies', 'Paper and code')]
    return render(
        'report.html',
        _TITLE,
        links=[*((f'#{anchor}', text) for anchor, text in anchors), *links],
        plotly=offline.get_plotlyjs() if packed else '',
        lead=self._figures.get(_LEAD),
        rows=overview.rows(self.judged, self._described),
        shown=[c.id for c, _ in self.judged if c.figure in self.drawn],
        summary=overview.summarise(self.judged),
        counts=overview.count(self.judged),
        ticks=[(overview.position(t), t) for t in overview.TICKS],
        rule=written.RULE,
        stale=list(self.library.stale()),
        sections=sections,
        discrepancies={
            paper: tables.texts(pd.read_csv(path))
            for paper, path in _discrepancies().items()
        },
    )

  def figure_page(
      self, name: str, home: str = 'report.html', downloads: Sequence[str] = ()
  ) -> str:
    """Returns the page of one figure, which links to `home`.

    Downloads are the endings of the files beside it.
    """
    figure = self._figures[name]
    return render(
        'figure.html',
        figure['title'],
        links=[(home, 'All figures and claims')],
        figure=figure,
        downloads=downloads,
        configs=_configs(name),
    )

  @functools.cached_property
  def _figures(self) -> dict[str, dict[str, Any]]:
    """Name -> what the template shows of a figure, on both of its pages."""
    return {name: self._describe(name) for name in self.drawn}

  def _describe(self, name: str) -> dict[str, Any]:
    figure, table = self.drawn[name]
    shown = registry.figures()[name]
    return {
        'claims': [
            self._described[c.id] for c, _ in self.judged if c.figure == name
        ],
        'table': tables.texts(table.head(_MAX_ROWS)),
        'num_rows': len(table),
        'findings': self._findings(name),
        'runs': [
            {
                'config': plugins.config_of(e),
                'list': _facts(e, self.library, shown.preset),
            }
            for e in shown.experiments
        ],
        **_picture(name, shown.title, figure),
    }

  def _findings(self, name: str) -> list[str]:
    """Returns what was found on the parts of the paper that a figure shows.

    Findings are of the bundled results: there are none if a user's own runs
    are drawn.
    """
    for experiment in registry.figures()[name].experiments:
      if (self.library.values(experiment)['source'] == 'own').any():
        return []
    judged = [
        (claim, entry)
        for claim, entry in self.judged
        if claim.figure == name and entry['source'] == 'bundled'
    ]
    parts = dict.fromkeys(claim.artefact for claim, _ in judged)
    return [
        overview.found_here(part, self.library, judged)
        for part in parts
        if part in overview.FINDINGS
    ]

  @functools.cached_property
  def _described(self) -> dict[str, dict[str, Any]]:
    """Id -> what the templates show of a claim."""
    return {c.id: overview.describe(entry) for c, entry in self.judged}


def picture_page(figure: go.Figure, name: str, title: str) -> str:
  """Returns the page of a figure that is not in the report."""
  none = {'claims': [], 'findings': [], 'table': {}, 'num_rows': 0, 'runs': []}
  picture = none | _picture(name, title, figure)
  return render('figure.html', title, figure=picture)


def render(template: str, title: str, **values: Any) -> str:
  """Returns a page; values are escaped unless they are Markup."""
  script = (_FOLDER / 'report.js').read_text('utf-8')
  digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
  given: dict[str, Any] = {
      'links': (),
      'plotly': '',
      'downloads': (),
      'configs': {},
  }
  return (
      _environment()
      .get_template(template)
      .render(
          given | values,
          title=title,
          policy=markupsafe.Markup(_POLICY.format(digest=digest)),
          style=markupsafe.Markup((_FOLDER / 'report.css').read_text('utf-8')),
          script=markupsafe.Markup(script),
      )
  )


def _pack(given: str | Mapping[str, Any]) -> str:
  """Returns a script, or a figure as JSON, compressed and in base64."""
  text = given if isinstance(given, str) else json.dumps(given)
  return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


@functools.cache
def _environment() -> jinja2.Environment:
  environment = jinja2.Environment(
      loader=jinja2.FileSystemLoader(_FOLDER / 'templates'),
      autoescape=True,
      trim_blocks=True,
      undefined=jinja2.StrictUndefined,
  )
  environment.filters['rows'] = lambda columns: zip(*columns.values())
  environment.filters['code'] = _mark_code
  environment.filters['pack'] = _pack
  return environment


def _mark_code(text: str) -> markupsafe.Markup:
  """Returns text, escaped, with what stands between backticks as code."""
  escaped = str(markupsafe.escape(text))
  return markupsafe.Markup(re.sub('`([^`]+)`', r'<code>\1</code>', escaped))


def _picture(name: str, title: str, figure: go.Figure | None) -> dict[str, Any]:
  """Returns a figure's title, chart and caption for the template."""
  shown = {'name': name, 'title': title, 'max_rows': _MAX_ROWS}
  if figure is None:
    return {**shown, 'chart': None, 'caption': []}
  figure_layout: Any = figure.layout
  caption = (figure_layout.meta or {}).get(layout.CAPTION, [])
  return {**shown, 'chart': _for_page(figure), 'caption': caption}


def _for_page(figure: go.Figure) -> dict[str, Any]:
  """Returns a figure's JSON without title and caption, as wide as its page."""
  # Plotly checks every number again when a figure is copied or changed.
  chart = _in_float32(json.loads(str(figure.to_json())))
  shown = {
      key: value
      for key, value in chart['layout'].items()
      if key not in ('title', 'width', 'meta')
  }
  shown['annotations'] = [
      note
      for note in shown.get('annotations', ())
      if note.get('name') != layout.CAPTION
  ]
  margin, room = shown.get('margin', {}), {'t': 70, 'b': 75}
  if 'height' in shown and room.keys() <= margin.keys():
    shown['height'] += sum(room[side] - margin[side] for side in room)
  shown |= {'autosize': True, 'margin': margin | room}
  return chart | {'layout': shown}


def _in_float32(part: Any) -> Any:
  """Returns a part of a figure's JSON with float32 in place of float64.

  Seven digits are more than a screen shows, and halve the report's charts.
  """
  if isinstance(part, list):
    return [_in_float32(one) for one in part]
  if not isinstance(part, dict):
    return part
  if part.get('dtype') == 'f8':
    numbers = np.frombuffer(base64.b64decode(part['bdata']), '<f8')
    short = base64.b64encode(numbers.astype('<f4').tobytes()).decode()
    return part | {'dtype': 'f4', 'bdata': short}
  return {key: _in_float32(one) for key, one in part.items()}


def _discrepancies() -> dict[str, pathlib.Path]:
  """Returns paper -> where it differs from the code that was released."""
  of_studies = {
      study.paper: study.folder / study.discrepancies
      for study in plugins.studies()
      if study.discrepancies
  }
  return {'Schug et al. (2024)': _FOLDER / 'discrepancies.csv', **of_studies}


def _configs(figure: str) -> dict[str, tuple[str, str]]:
  """Returns name -> (path, source) of a figure's configs, and of blocks."""
  experiments = registry.figures()[figure].experiments
  described = map(plugins.config_of, experiments)
  paths = {c.name: (c.path, pathlib.Path(c.module.__file__)) for c in described}
  if paths:
    paper = pathlib.Path(configs.__file__).parent / 'blocks'
    paths |= {
        f'blocks/{p.stem}': (f'configs/blocks/{p.name}', p)
        for p in sorted(paper.glob('[a-z]*.py'))
    }
  for name, path in list(paths.values()):
    blocks = path.parent / 'blocks.py'  # A study has them in one file.
    if blocks.exists():
      study = f'{path.parents[1].name}/blocks'
      paths[study] = (f'{name.rpartition("/")[0]}/blocks.py', blocks)
  return {
      name: (shown, p.read_text('utf-8')) for name, (shown, p) in paths.items()
  }


def _facts(
    experiment: str, library: data.Library, preset: str | None
) -> dict[str, str]:
  """Returns scale, command, cost and origin of the runs that are drawn."""
  frame = library.values(experiment, preset)
  if frame.empty:
    flag = sweeps.config_flag(experiment, preset or 'laptop')
    return {'Runs': 'none finished', 'Command': f'{_TRAIN} {flag}'}
  runs = frame.drop_duplicates('run_id')
  drawn = str(runs['preset'].iloc[0])
  commits = dict.fromkeys(', '.join(runs['commit'].unique()).split(', '))
  scale = 'the published scale'
  if not runs['published_scale'].all():
    scale = 'not the published scale'
  return {
      'Scale': f'{drawn}, {scale}; {len(runs)} runs',
      'Command': f'{_TRAIN} {sweeps.config_flag(experiment, drawn)}',
      'Cost': _cost(runs),
      'Results': f'{runs["source"].iloc[0]}, of commit {", ".join(commits)}',
  }


def _cost(runs: pd.DataFrame) -> str:
  if runs['wall_s'].isna().any():
    return 'not timed'
  minutes = runs['wall_s'].sum() / 60
  devices = ', '.join(runs['device'].unique())
  hours = f'{minutes:.0f} minutes' if minutes < 600 else f'{minutes / 60:.0f} h'
  if runs['cpu_s'].notna().all():
    hours += f' (CPU time {runs["cpu_s"].sum() / 60:.0f} minutes)'
  return f'{hours} of training, on {devices}'

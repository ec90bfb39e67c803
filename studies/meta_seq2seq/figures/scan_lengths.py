"""SCAN: accuracy by the length of the output."""

import re

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.studies.meta_seq2seq.figures import cells

TITLE = 'SCAN: are longer commands harder?'
EXPERIMENTS = ('scan_add_jump', 'scan_around_right', 'scan_length')
_LINES = {
    '"jump", permuted meanings': cells.PERMUTED,
    '"jump", meanings out of 24': cells.MORE_VERBS,
    '"around right"': cells.AROUND_RIGHT,
    'Longer outputs': cells.LONGER,
}


def draw(library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the figure and the table of what it shows."""
  read = {name: cells.read(library, name) for name in EXPERIMENTS}
  panels, rows, missing = {}, [], []
  for title, entries in _LINES.items():
    panels[title] = []
    for trained in entries:
      frame = read[trained.experiment].frame
      by_actions = by_length(frame, trained)
      panels[title].append(
          lines.Line(trained.network.name, trained.network.colour, by_actions)
      )
      rows += [
          {
              'test': title,
              'network': trained.network.name,
              'num_actions': length,
              **mean.columns('accuracy'),
              'num_seeds': mean.num_seeds,
              'preset': ', '.join(frame['preset'].unique()),
          }
          for length, values in by_actions.iterrows()
          for mean in [stats.mean(values)]
      ]
    names = [line.name for line in panels[title] if line.seeds.empty]
    if len(names) < len(entries):  # A panel without any line says so itself.
      missing += [f'{name} ({title})' for name in names]
  caption = cells.caption(read)
  if missing:
    caption.append(f'No finished run: {", ".join(missing)}.')
  figure = lines.draw(
      panels,
      x_title='actions',
      y_title='accuracy (fraction of rows)',
      caption=caption,
      num_columns=2,
      y_range=(0, 1.02),
  )
  columns = ['test', 'network', 'num_actions', 'accuracy_mean', 'accuracy_se']
  columns += ['num_seeds', 'preset']
  return figure, pd.DataFrame(rows, columns=columns)


def by_length(frame: pd.DataFrame, trained: cells.Trained) -> pd.DataFrame:
  """Returns accuracies [number of actions, seeds]; empty without a run."""
  metrics = pick.rows(frame, trained.cell)['metric'].unique()
  by_actions = {
      int(match.group(1)): pick.values(
          frame, trained.cell, 'ood', metric=metric
      )
      for metric in metrics
      if (match := re.fullmatch(r'accuracy_length_(\d+)', metric))
  }
  return pd.DataFrame(by_actions).T.sort_index()

"""Tables 2 and 3 of Lake (2019), and mutual exclusivity: test accuracies.

Published values, over five runs, are drawn beside ours; their whiskers are the
standard deviations that the paper gives.
"""

from collections.abc import Mapping, Sequence
import math
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.studies.meta_seq2seq.figures import cells

TITLES = {
    'scan_me': (
        'Mutual exclusivity: do learners guess the meaning of a new word?'
    ),
    'scan_table2': 'SCAN, Table 2: can "jump" be used in new commands?',
    'scan_table3': (
        'SCAN, Table 3: are "around right" and longer outputs solved?'
    ),
}


class _Row(NamedTuple):
  label: str
  trained: cells.Trained
  metric: str = 'accuracy'


def _by_network(compared: Sequence[cells.Trained]) -> tuple[_Row, ...]:
  """Returns rows that are labelled by their networks."""
  names = (t.network.name.replace(' ', '<br>', 1) for t in compared)
  labels = (name.replace('decoder ', 'decoder<br>') for name in names)
  return tuple(map(_Row, labels, compared))


_AROUND = _by_network(cells.AROUND_RIGHT)
PANELS = {
    'scan_me': {
        'Held-out mappings of words': (
            _Row('all queries', cells.WORDS),
            _Row('with the<br>withheld word', cells.WORDS, 'accuracy_withheld'),
            _Row('without it', cells.WORDS, 'accuracy_shown'),
            _Row(
                'one word withheld<br>per mapping',
                cells.WORDS,
                'accuracy_one_withheld',
            ),
        )
    },
    'scan_table2': {
        'Permuted meanings; SCAN itself': _by_network(cells.PERMUTED),
        'Meanings out of 24; more verbs': _by_network(cells.MORE_VERBS),
    },
    'scan_table3': {
        '"around right"': (
            _AROUND[0],
            _Row(
                'also "turn<br>around<br>right"',
                cells.AROUND_RIGHT[0],
                'accuracy_all_uses',
            ),
            _Row('with 20<br>extra<br>words', cells.MORE_DIRECTIONS),
            _AROUND[1],
        ),
        'Longer outputs': _by_network(cells.LONGER),
    },
}


def draw(name: str, library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the bars of one of PANELS, and their numbers."""
  panels = PANELS[name]
  experiments = dict.fromkeys(
      row.trained.experiment for rows in panels.values() for row in rows
  )
  read = {name: cells.read(library, name) for name in experiments}
  frames = {name: grid.frame for name, grid in read.items()}
  figure = bars.draw(
      {
          title: [_bar(frames[row.trained.experiment], row) for row in rows]
          for title, rows in panels.items()
      },
      y_title=cells.ACCURACY,
      y_range=(0, 1),
      caption=cells.caption(read),
      beside_name='published, whisker: standard deviation',
  )
  return figure, make_table(panels, frames)


def make_table(
    panels: Mapping[str, Sequence[_Row]], frames: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
  """Returns a row per bar.

  Accuracies are fractions of rows, `_mean` and `_se` over seeds; 'training' is
  on fresh episodes, or batches, like those of training.
  """
  rows = []
  for title, entries in panels.items():
    for label, trained, metric in entries:
      frame = frames[trained.experiment]
      test = pick.values(frame, trained.cell, 'ood', metric=metric)
      training = pick.values(frame, trained.cell, 'test')
      mean, deviation = _published(trained, metric) or (math.nan, math.nan)
      runs = pick.rows(frame, trained.cell)
      rows.append({
          'tested_on': title,
          'network': trained.network.name,
          'trained_on': trained.meanings or 'mappings',
          'what': label.replace('<br>', ' '),
          **stats.mean(test).columns('test'),
          **stats.mean(training).columns('training'),
          'num_seeds': len(test),
          'preset': ', '.join(runs['preset'].unique()),
          'published_test': mean,
          'published_std': deviation,
      })
  return pd.DataFrame(rows)


def _bar(frame: pd.DataFrame, row: _Row) -> bars.Bar:
  return bars.Bar(
      label=row.label,
      colour=row.trained.network.colour,
      seeds=pick.values(frame, row.trained.cell, 'ood', metric=row.metric),
      missing='no finished run',
      beside=_published(row.trained, row.metric),
  )


def _published(
    trained: cells.Trained, metric: str
) -> tuple[float, float] | None:
  """Returns the paper's value; it has a single one for mutual exclusivity."""
  if metric not in ('accuracy', 'accuracy_one_withheld') or (
      trained.experiment == 'scan_me' and metric == 'accuracy'
  ):
    return None
  return reference.published_accuracy(trained.experiment, trained.cell, 'ood')

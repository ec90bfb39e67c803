"""Tables 2 and 3 of Lake (2019), and mutual exclusivity: test accuracies.

Published values, over five runs, are drawn beside ours; their whiskers are the
standard deviations that the paper gives.
"""

from collections.abc import Mapping, Sequence
import math
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go

from figures.lake2019 import cells
from figures.library import data
from figures.library import reference
from figures.plotting import bars
from figures.plotting import stats

TITLES = {
    'scan_me': 'Mutual exclusivity: words whose meaning was never shown',
    'scan_table2': 'SCAN, Table 2: using "jump" in new commands',
    'scan_table3': 'SCAN, Table 3: "around right", and longer outputs',
}


class _Row(NamedTuple):
  label: str
  trained: cells.Trained
  metric: str = 'accuracy'


def _add_jump(
    network: cells.Network, meanings: str, num_extra: int = 0
) -> _Row:
  name = network.name.replace(' ', '<br>', 1)
  trained = cells.Trained('scan_add_jump', network, meanings, num_extra)
  return _Row(name.replace('decoder ', 'decoder<br>'), trained)


def _around_right(
    label: str,
    trained: tuple[cells.Network, str, int],
    metric: str = 'accuracy',
) -> _Row:
  return _Row(label, cells.Trained('scan_around_right', *trained), metric)


def _mutual_exclusivity(label: str, metric: str) -> _Row:
  return _Row(label, cells.Trained('scan_me', cells.META), metric)


_META_NETWORKS = (cells.META, cells.NO_SUPPORT_LOSS, cells.NO_ATTENTION)
PANELS = {
    'scan_me': {
        'Held-out mappings of words': (
            _mutual_exclusivity('all queries', 'accuracy'),
            _mutual_exclusivity(
                'with the<br>withheld word', 'accuracy_withheld'
            ),
            _mutual_exclusivity('without it', 'accuracy_shown'),
            _mutual_exclusivity(
                'one word withheld<br>per mapping', 'accuracy_one_withheld'
            ),
        )
    },
    'scan_table2': {
        'Permuted meanings; SCAN itself': (
            *(_add_jump(network, 'permuted') for network in _META_NETWORKS),
            _add_jump(cells.STANDARD, 'fixed'),
        ),
        'Meanings out of 24; more verbs': (
            *(_add_jump(network, 'extended', 20) for network in _META_NETWORKS),
            _add_jump(cells.STANDARD, 'aligned', 20),
        ),
    },
    'scan_table3': {
        '"around right"': (
            _around_right('meta<br>seq2seq', (cells.META, 'extended', 2)),
            _around_right(
                'also "turn<br>around<br>right"',
                (cells.META, 'extended', 2),
                'accuracy_all_uses',
            ),
            _around_right(
                'with 20<br>extra<br>words', (cells.META, 'extended', 20)
            ),
            _around_right('standard<br>seq2seq', (cells.STANDARD, 'fixed', 0)),
        ),
        'Longer outputs': tuple(
            _Row(label, cells.Trained('scan_length', *trained))
            for label, trained in (
                ('meta<br>seq2seq', (cells.META, 'extended', 20)),
                ('standard<br>seq2seq', (cells.STANDARD, 'fixed', 0)),
            )
        ),
    },
}


def draw(name: str, library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the bars of one of PANELS, and their numbers."""
  panels = PANELS[name]
  experiments = dict.fromkeys(
      row.trained.experiment for rows in panels.values() for row in rows
  )
  read = {name: cells.read(library, name) for name in experiments}
  frames = {name: found.frame for name, found in read.items()}
  figure = bars.draw(
      {
          title: [_bar(frames[row.trained.experiment], row) for row in rows]
          for title, rows in panels.items()
      },
      title=TITLES[name],
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
      test = _values(frame, trained, metric)
      training = data.values(frame, trained.cell, 'test')
      mean, deviation = _published(trained, metric) or (math.nan, math.nan)
      runs = data.rows(frame, trained.cell)
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


def _values(
    frame: pd.DataFrame, trained: cells.Trained, metric: str
) -> pd.Series:
  return data.values(frame, trained.cell, 'ood', metric=metric)


def _bar(frame: pd.DataFrame, row: _Row) -> bars.Bar:
  return bars.Bar(
      label=row.label,
      colour=row.trained.network.colour,
      seeds=_values(frame, row.trained, row.metric),
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

"""Figures A.1 and A.2 of Lake (2019): attention, mean over seeds.

Left: each query step attends to the memory, whose cells are the support inputs.
Right: each output symbol attends to the query. According to the paper, query
steps of mutual exclusivity (except the last) attend to the cells that do *not*
hold their word, verbs of SCAN attend to their own cell, and the decoder reads
the query in order.
"""

from collections.abc import Mapping, Sequence
import functools
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.studies.meta_seq2seq import build
from modular_hyperteacher.studies.meta_seq2seq import vocabulary
from modular_hyperteacher.studies.meta_seq2seq.figures import cells

TITLES = {
    'scan_attention_me': 'Figure A.1: attention in mutual exclusivity',
    'scan_attention': 'Figure A.2: attention in SCAN, "jump"',
}
TRAINED = {
    'scan_attention_me': cells.WORDS,
    'scan_attention': cells.PERMUTED[0],
}


class Map(NamedTuple):
  """Attention of the symbols of one sequence to those of another."""

  means: np.ndarray | None  # Shares, [rows, columns]; None without a run.
  row_names: Sequence[str]
  column_names: Sequence[str]


def draw(name: str, library: data.Library) -> tuple[go.Figure, pd.DataFrame]:
  """Returns the maps of one of TITLES, and their numbers."""
  trained = TRAINED[name]
  grid = cells.read(library, trained.experiment)
  frame = pick.rows(grid.frame, trained.cell)
  shown = grid._replace(frame=frame, cells=[trained.cell], num_described=1)
  words, actions, items = symbols(trained.experiment)
  maps = {
      f'{kind} attention': Map(
          attention(frame, kind, rows, columns), rows, columns
      )
      for kind, rows, columns in (
          ('memory', words, items),
          ('decoder', actions, words),
      )
  }
  caption = shown.caption('Rows sum to one; if not, the rest is on padding.')
  return _draw(maps, caption), make_table(maps)


@functools.cache
def symbols(experiment: str) -> tuple[list[str], list[str], list[str]]:
  """Returns the example's query, its output, and the support inputs."""
  config = plugins.config_of(experiment)
  task = config.get_config('paper').task.to_dict()
  episodes = build.TASKS[task.pop('name')](**task)
  episode = episodes.example()

  def decode(
      sequences: vocabulary.Sequences, vocab: vocabulary.Vocabulary
  ) -> list[tuple[str, ...]]:
    return [vocab.decode(row) for row in np.asarray(sequences.tokens).tolist()]

  (query,) = decode(episode.query.inputs, episodes.input_vocab)
  (output,) = decode(episode.query.outputs, episodes.output_vocab)
  support = decode(episode.support.inputs, episodes.input_vocab)
  return (
      [*query, 'EOS'],
      [*output, 'EOS'],
      [' '.join(command) for command in support],
  )


def attention(
    frame: pd.DataFrame, kind: str, rows: Sequence[str], columns: Sequence[str]
) -> np.ndarray | None:
  """Returns the mean over seeds of 'memory' or 'decoder' attention."""
  means = np.full((len(rows), len(columns)), np.nan)
  for index in np.ndindex(means.shape):
    metric = f'{kind}_attention_{index[0]}_{index[1]}'
    means[index] = pick.values(frame, {}, 'ood', metric=metric).mean()
  return None if np.isnan(means).all() else means


def make_table(maps: Mapping[str, Map]) -> pd.DataFrame:
  """Returns a row per cell of the maps."""
  rows = [
      {
          'attention': name,
          'step': f'{row + 1} {row_names[row]}',
          'to': f'{column + 1} {column_names[column]}',
          'share': value,
      }
      for name, (means, row_names, column_names) in maps.items()
      if means is not None
      for (row, column), value in np.ndenumerate(means)
  ]
  return pd.DataFrame(rows, columns=['attention', 'step', 'to', 'share'])


def _draw(maps: Mapping[str, Map], caption: Sequence[str]) -> go.Figure:
  figure = layout.make_row(maps, horizontal_spacing=0.16)
  for column, (means, row_names, names) in enumerate(maps.values(), start=1):
    if means is None:
      layout.name_empty(figure, 'no finished run', 1, column)
      continue
    figure.add_trace(
        go.Heatmap(
            z=means,
            coloraxis='coloraxis',
            texttemplate='%{z:.2f}',
            hovertemplate='%{y} to %{x}: %{z:.3f}<extra></extra>',
        ),
        row=1,
        col=column,
    )
    # Ticks by index, as the same word may occur twice.
    figure.update_xaxes(
        tickvals=list(range(len(names))), ticktext=names, col=column
    )
    figure.update_yaxes(
        tickvals=list(range(len(row_names))),
        ticktext=row_names,
        autorange='reversed',
        col=column,
    )
  figure.update_xaxes(showgrid=False, ticks='')
  figure.update_yaxes(showgrid=False, ticks='')
  figure.update_layout(
      coloraxis={
          'colorscale': 'Cividis',
          'cmin': 0,
          'cmax': 1,
          'colorbar': {'title': {'text': 'share', 'side': 'right'}},
      }
  )
  layout.finish(figure, caption=caption, plot_height=480)
  return figure

"""From finished runs to figures and their tables."""

import json
import math
import pathlib
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.paper import fig3b
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import heatmaps
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.figures.plotting import tables
from tests.helpers import made_up
from tests.helpers import results


def test_the_table_has_the_numbers(tmp_path: pathlib.Path) -> None:
  root = made_up.write_runs(tmp_path, made_up.AS_CLAIMED, 'paper')
  _, table = fig3b.draw(results.library(root))
  row = cast(Any, table.set_index(['model', 'task support'])).loc[
      'maml', 'random'
  ]
  assert row['ood_mean'] == pytest.approx(0.61)
  assert row['ood_se'] == pytest.approx(0.01 / math.sqrt(3))
  assert row['test_mean'] == pytest.approx(0.62)
  assert row['ood_k8_mean'] == pytest.approx(0.31)
  assert row['num_seeds'] == 3
  # Table A6: 60.60 +- 0.37.
  assert row['difference_in_published_std'] == pytest.approx(0.004 / 0.0037)
  assert '0.610 ± 0.006' in tables.to_markdown(table)


def test_differences_from_published_values_need_the_published_scale(
    tmp_path: pathlib.Path,
) -> None:
  root = made_up.write_runs(tmp_path, made_up.AS_CLAIMED)
  _, table = fig3b.draw(results.library(root))
  assert table['difference_in_published_std'].isna().all()
  assert table['published_ood'].notna().sum() == 4


def test_the_figure_says_its_scale(tmp_path: pathlib.Path) -> None:
  scale = {'training.num_outer_steps': 1234, 'task.max_active': 4}
  root = made_up.write_runs(tmp_path, made_up.AS_CLAIMED, override=scale)
  figure, _ = fig3b.draw(results.library(root))
  assert (
      'laptop scale, 3 seeds, 1,234 outer steps, M = 8, K = 4 \N{EN DASH} not'
      ' the published scale'
      in made_up.texts(figure)
  )


@pytest.mark.parametrize('missing', [0, 3, 8])
def test_missing_runs_are_named(tmp_path: pathlib.Path, missing: int) -> None:
  accuracies = dict(list(made_up.AS_CLAIMED.items())[missing:])
  made_up.write_runs(tmp_path, accuracies)
  figure, table = fig3b.draw(results.library(tmp_path))
  # MAML and ANIL as large as the hypernetworks are not among them.
  assert made_up.texts(figure).count('no run') == missing + 4
  assert (table['num_seeds'] == 0).sum() == missing + 4
  assert len(table) == 12


def test_seeds_without_a_value_do_not_count(tmp_path: pathlib.Path) -> None:
  spread = (math.nan, 0.0, 0.01)
  made_up.write_runs(tmp_path, {('anil', 'random'): 0.6}, spread=spread)
  made_up.write_runs(tmp_path, {('maml', 'random'): math.nan})
  figure, table = fig3b.draw(results.library(tmp_path))
  rows = table.set_index(['model', 'width', 'task support'])['num_seeds']
  assert rows['anil', 64, 'random'] == 2 and rows['maml', 64, 'random'] == 0
  assert made_up.texts(figure).count('not measured') == 1
  assert made_up.texts(figure).count('no run') == 10


def test_seeds_that_diverged_are_named(tmp_path: pathlib.Path) -> None:
  made_up.write_runs(tmp_path, {('maml', 'random'): 0.6})
  (path,) = tmp_path.glob('fig3b/laptop/*/summary.json')
  summary = json.loads(path.read_text()) | {'diverged': [2021]}
  path.write_text(json.dumps(summary))
  figure, _ = fig3b.draw(results.library(tmp_path))
  assert f'1 seed of {path.parent.name}' in made_up.texts(figure)


def test_every_model_has_a_colour_of_its_own() -> None:
  assert set(style.COLOURS) == set(style.MODEL_NAMES) == set(style.MODELS)
  assert len(set(style.COLOURS.values())) == len(style.MODELS)


# Marks.


def _seeds(*values: float) -> pd.Series:
  return pd.Series(values, index=range(len(values)), dtype=float)


@pytest.mark.parametrize(
    'values, level, expected',
    [
        # From above, as negative values.
        ([-1.0, -0.75, -0.5], -1.0, 0.0),
        ([-1.0, -0.75, -0.5], -2.0, 0.0),
        ([-1.0, -0.75, -0.5], -0.7, 12.0),
        ([0.0, 0.4, 0.8], 0.6, 15.0),
        ([0.0, 0.4, 0.8], 0.9, 99.0),
        ([0.7, 0.9, 0.7], 0.8, 5.0),  # The first time counts.
        ([0.9, 0.7, 0.9], 0.8, 0.0),
    ],
)
def test_a_level_is_reached_between_evaluations(
    values: list[float], level: float, expected: float
) -> None:
  x = np.array([0.0, 10.0, 20.0])
  found = stats.first_reach(x, np.array(values), level, never=99.0)
  assert found == pytest.approx(expected)


def test_bars_stand_at_their_means_beside_their_seeds() -> None:
  shown = bars.Bar('a<br>b', '#000000', _seeds(0.2, 0.4), beside=(0.5, 0.1))
  hidden = bars.Bar('c', '#000000', _seeds(), missing='no such run')
  figure = bars.draw(
      {'one': [shown, hidden], 'two': [shown]},
      y_title='y',
      caption=['first', 'second ' * 20],
  )
  heights = [
      trace.y[0] for trace in made_up.traces(figure) if trace.type == 'bar'
  ]
  assert heights == pytest.approx([0.3, 0.3])
  assert made_up.texts(figure).count('no such run') == 1
  # The report breaks lines itself.
  assert made_up.layout(figure).meta['caption'] == ['first', 'second ' * 20]
  lines = made_up.layout(figure).annotations[-1].text.split('<br>')
  assert [len(line) for line in lines] == [5, 104, 34]
  errors = [
      t.error_y.array[0] for t in made_up.traces(figure) if t.error_y.array
  ]
  assert errors[:2] == pytest.approx([0.1, 0.1])  # Ours, then as published.


def test_lines_are_means_within_their_errors() -> None:
  seeds = pd.DataFrame({2020: [0.1, 0.5], 2021: [0.3, math.nan]}, index=[1, 2])
  figure = lines.draw(
      {
          'one': [lines.Line('a', '#000000', seeds)],
          'two': [lines.Line('a', '#000000', seeds)],
          'three': [lines.Line('a', '#000000', seeds.iloc[:0])],
      },
      x_title='x',
      y_title='y',
      caption=['scale'],
      num_columns=2,
  )
  band, line = made_up.traces(figure)[:2]
  assert list(line.y) == pytest.approx([0.2, 0.5])
  assert list(band.y) == pytest.approx([0.3, 0.5, 0.5, 0.1])
  assert [t.name for t in made_up.traces(figure) if t.showlegend is None] == [
      'a'
  ]
  assert made_up.texts(figure).count('no finished run') == 1


def test_heat_maps_name_what_is_missing_and_leave_out_what_cannot_be() -> None:
  grid = {
      (1, 4): heatmaps.Cell(_seeds(0.2, 0.4)),
      (2, 4): heatmaps.Cell(_seeds(), missing='no run'),
      (1, 6): heatmaps.Cell(_seeds(0.7)),
  }
  figure = heatmaps.draw(
      {'one': grid},
      x_title='x',
      y_title='y',
      z_title='z',
      caption=['scale'],
  )
  (trace,) = made_up.traces(figure)
  assert trace.z == ([pytest.approx(0.3), None], [0.7, None])
  assert made_up.texts(figure).count('no<br>run') == 1
  assert '± 0.100, seeds: 2' in trace.customdata[0][0]


def test_heat_maps_side_by_side_have_the_same_rows_and_columns() -> None:
  """Else an axis that they share would name the rows of one of them."""
  small = {(2, 8): heatmaps.Cell(_seeds(0.1))}
  large = {
      (1, 4): heatmaps.Cell(_seeds(0.2)),
      (2, 8): heatmaps.Cell(_seeds(0.3)),
  }
  figure = heatmaps.draw(
      {'small': small, 'large': large},
      x_title='x',
      y_title='y',
      z_title='z',
      caption=['scale'],
  )
  first, second = made_up.traces(figure)
  assert first.z == ([None, None], [None, pytest.approx(0.1)])
  assert second.z == ([pytest.approx(0.2), None], [None, pytest.approx(0.3)])
  for axis in (made_up.layout(figure).yaxis, made_up.layout(figure).yaxis2):
    assert axis.ticktext == ('4', '8')
  assert made_up.layout(figure).xaxis.ticktext == ('1', '2')


def test_whatever_is_missing_is_an_empty_cell() -> None:
  table = pd.DataFrame({
      'text': ['a', None],
      'number': [math.nan, 2e-5],
      'count': pd.array([1, pd.NA], dtype='Int64'),
  })
  assert tables.to_markdown(table).splitlines()[2:] == [
      '| a |  | 1 |',
      '|  | 2.0e-05 |  |',
  ]


def test_a_figure_sets_its_title_in_lines() -> None:
  seeds = pd.DataFrame({2020: [0.1]}, index=[1])
  panels = {'': [lines.Line('a', '#000000', seeds)]}

  def draw(_: data.Library) -> cells.Drawn:
    drawn = lines.draw(panels, x_title='x', y_title='y', caption=['scale'])
    return drawn, pd.DataFrame({'preset': ['laptop']})

  title = 'Do words ' + 'of a title ' * 10 + 'stay whole?'
  figure, _ = described.Figure(title, (), draw).make(data.Library('/nowhere'))
  assert figure is not None
  text = made_up.layout(figure).title.text
  assert text.replace('<br>', ' ') == title
  assert max(map(len, text.split('<br>'))) <= 90

"""Figures of the hyperteacher, on made-up results."""

import math
import pathlib
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import fig3a
from modular_hyperteacher.figures.paper import fig3c
from modular_hyperteacher.figures.paper import fig_a3
from modular_hyperteacher.figures.paper import fig_a4
from modular_hyperteacher.figures.paper import student_size
from modular_hyperteacher.figures.paper import tables_a2_a8
from modular_hyperteacher.figures.plotting import style
from tests.helpers import made_up
from tests.helpers import made_up_rules
from tests.helpers import results

# Every figure.

FIGURES = (
    *('fig3a', 'fig3b', 'fig3c', 'fig3d', 'fig3e', 'fig3f', 'fig_a3', 'fig_a4'),
    *('two_layers', 'fig_a3_two_layers'),
    *('fig_a5', 'fig_a6', 'fig_a7', 'table_a6', 'table_a8', 'table_a10'),
    *('scaling_law', 'sample_complexity'),
)


@pytest.mark.parametrize('name', FIGURES)
def test_every_figure_can_be_drawn_without_a_run(
    tmp_path: pathlib.Path, name: str
) -> None:
  figure, table = registry.figures()[name].draw(results.library(tmp_path))
  assert registry.figures()[name].title
  if registry.figures()[name].experiments:
    assert 'no finished runs' in made_up.texts(figure)
  else:
    assert len(table)


@pytest.mark.parametrize(
    'name',
    [name for name in FIGURES if registry.figures()[name].experiments],
)
def test_every_figure_names_the_runs_it_misses(
    tmp_path: pathlib.Path, name: str
) -> None:
  (experiment,) = registry.figures()[name].experiments
  made_up.write_by_rule(tmp_path, experiment, made_up_rules.constant)
  whole, _ = registry.figures()[name].draw(results.library(tmp_path))
  assert 'laptop scale, 3 seeds' in made_up.texts(whole)
  assert 'not the published scale' in made_up.texts(whole)
  assert 'issing' not in made_up.texts(whole)
  for folder in tmp_path.glob(f'{experiment}/laptop/*nonlinear_hypernetwork-*'):
    (folder / 'summary.json').unlink()
  part, table = registry.figures()[name].draw(results.library(tmp_path))
  words = ('are missing', 'no run', 'No finished run', 'no finished run')
  assert any(word in made_up.texts(part) for word in words)
  assert len(table)


def test_what_the_laptop_preset_leaves_out_is_said(
    tmp_path: pathlib.Path,
) -> None:
  made_up.write_by_rule(tmp_path, 'fig3e', made_up_rules.constant)
  for name, expected in (
      ('table_a6', 'Not in the laptop preset: MAML.'),
      ('table_a7', 'Linear hypernetwork, Nonlinear hypernetwork.'),
      ('fig3e', 'Published, but not run at this scale (M/K): ANIL 4/1,'),
      ('fig3e', 'not run'),
  ):
    figure, _ = registry.figures()[name].draw(results.library(tmp_path))
    assert expected in made_up.texts(figure)


# Single figures.


def test_the_summary_takes_one_condition_per_model(
    tmp_path: pathlib.Path,
) -> None:
  changed = {('anil', 'random'): 0.9}
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED)
  longer = {'training.num_outer_steps': 6000}
  made_up.write_runs(tmp_path, changed, override=longer)
  _, table = registry.figures()['summary'].draw(results.library(tmp_path))
  shown = {'panel': 'fig3b', 'group': 'every module in training'}
  shown['model'] = 'ANIL'
  (mean,) = pick.rows(table, shown)['value_mean']
  assert mean == pytest.approx(0.9, abs=0.02)
  for folder in tmp_path.glob('fig3b/laptop/*anil-*'):
    (folder / 'summary.json').unlink()
  figure, table = registry.figures()['summary'].draw(results.library(tmp_path))
  assert 'ANIL (every module in training)' in made_up.texts(figure)
  shown['model'] = 'MAML'  # It is still there.
  assert pick.rows(table, shown)['value_mean'].notna().all()


def test_targets_without_r2_are_listed(tmp_path: pathlib.Path) -> None:
  def rule(fields: dict[str, Any], split: str, metric: str) -> float:
    held_out = fields['task.task_support'] == 'non_compositional'
    return math.nan if held_out and metric == 'r2_l0_m7' else 0.5

  made_up.write_by_rule(tmp_path, 'fig3c', rule)
  figure, _ = fig3c.FIGURES['fig3c'].draw(results.library(tmp_path))
  named = 'Non-compositional support: without layer 0, module 7 (3 of 3 seeds)'
  assert named in made_up.texts(figure)
  figure, _ = fig3c.FIGURES['fig3d'].draw(results.library(tmp_path))
  assert 'without' not in made_up.texts(figure)


def test_the_learning_rate_of_the_lowest_validation_loss_is_shown(
    tmp_path: pathlib.Path,
) -> None:
  def rule(fields: dict[str, Any], split: str, metric: str) -> float:
    rate = fields['model.outer.learning_rate']
    best = 3e-3 if split == 'ood' else 1e-3
    return abs(rate - best) if metric == 'loss' else 100 * rate

  made_up.write_by_rule(tmp_path, 'fig3f', rule, 'paper', hidden_dim=16)
  figure, table = student_size.FIG_3F.draw(results.library(tmp_path))
  shown = [
      value
      for trace in made_up.traces(figure)
      for row in trace.z
      for value in row
  ]
  values = [value for value in shown if value is not None]
  assert values == pytest.approx([0.1] * 10)
  below = {
      text for t in made_up.traces(figure) for row in t.text for text in row
  }
  assert '<br>0.30 at 0.003' in below
  assert len(table) == 5 * 6 * 3 * 2


def test_learning_rates_are_compared_on_the_seeds_that_they_share() -> None:
  size = {'model.name': 'anil', 'model.hidden_dim': 64}
  size['model.modules_per_teacher_module'] = 1
  rows = [(1e-3, seed, loss) for seed, loss in enumerate((0.2, 0.2, 0.8))]
  rows += [(3e-3, seed, 0.3) for seed in range(2)]  # The hard seed is missing.
  rate = 'model.outer.learning_rate'
  frame = pd.DataFrame(rows, columns=[rate, 'seed', 'value']).assign(
      split='valid', metric='loss', kind='last', **size
  )
  rates = [size | {rate: value} for value in (1e-3, 3e-3)]
  found = cells.Cells(frame, rates, len(rates), {}, 'laptop')
  assert student_size.best_rates(found, 'anil') == rates[:1]


def test_a_rate_at_which_seeds_diverge_is_not_chosen() -> None:
  size = {'model.name': 'anil', 'model.hidden_dim': 64}
  size['model.modules_per_teacher_module'] = 1
  rows = [(1e-3, seed, 'loss', 0.3) for seed in range(3)]
  rows += [(3e-3, 0, 'loss', 0.2)]
  rows += [(3e-3, seed, bundles.DIVERGED, 1.0) for seed in (1, 2)]
  rate = 'model.outer.learning_rate'
  frame = pd.DataFrame(rows, columns=[rate, 'seed', 'metric', 'value']).assign(
      split='valid', kind='last', **size
  )
  rates = [size | {rate: value} for value in (1e-3, 3e-3)]
  found = cells.Cells(frame, rates, len(rates), {}, 'laptop')
  assert student_size.best_rates(found, 'anil') == rates[:1]


def test_training_tasks_to_a_level() -> None:
  tasks = 32 * np.array([100, 200, 300, 400])
  accuracy = np.array([0.1, 0.7, 0.5, 0.9])
  assert fig_a3.tasks_to_reach(tasks, accuracy, 0.6) == 200 * 32
  assert fig_a3.tasks_to_reach(tasks, accuracy, 0.8) == 400 * 32
  assert math.isnan(fig_a3.tasks_to_reach(tasks, accuracy, 0.95))


def test_lines_go_through_the_means(tmp_path: pathlib.Path) -> None:
  made_up.write_by_rule(tmp_path, 'fig_a4', made_up_rules.by_shots(0.05))
  figure, _ = fig_a4.FIGURES['fig_a4'].draw(results.library(tmp_path))
  line = next(t for t in made_up.traces(figure) if t.mode == 'lines+markers')
  shots = list(line.x)
  assert shots == [8, 16, 32]
  expected = [0.5 + 0.05 * math.log2(s) for s in shots]
  assert list(line.y) == pytest.approx(expected)


def test_tables_have_ours_at_every_scale_beside_the_published(
    tmp_path: pathlib.Path,
) -> None:
  for preset in ('laptop', 'paper'):
    size: dict[str, Any] = {'num_modules': 8, 'max_active': 2}
    made_up.write_by_rule(
        tmp_path, 'fig3e', made_up_rules.constant, preset, **size
    )
  figure, table = tables_a2_a8.FIGURES['table_a6'].draw(
      results.library(tmp_path)
  )
  rows = cast(Any, table.set_index(['split', 'model', 'preset']))
  ours = rows.loc['ood', 'nonlinear_hypernetwork', 'paper']
  # Table A6: 96.05, 0.34.
  assert ours['published'] == pytest.approx(0.9605)
  assert ours['difference_in_published_std'] == pytest.approx(
      (0.5 - 0.9605) / 0.0034
  )
  laptop = rows.loc['ood', 'nonlinear_hypernetwork', 'laptop']
  assert math.isnan(laptop['difference_in_published_std'])
  assert 'compare directions, not values' in made_up.texts(figure)
  names = [
      trace.name for trace in made_up.traces(figure) if trace.showlegend is None
  ]
  assert names == [
      'published, whisker: dispersion',
      'ours, paper scale: standard error',
      'ours, laptop scale: standard error',
  ]


def test_tables_leave_out_rows_that_nobody_measured(
    tmp_path: pathlib.Path,
) -> None:
  _, table = tables_a2_a8.FIGURES['table_a2'].draw(results.library(tmp_path))
  assert set(table['split']) == {
      'train',
      'test',
      'ood',
      'ood_k1',
      'ood_k2',
      'ood_k4',
  }
  assert len(table) == 6 * 4


def test_hyperparameters_are_those_of_table_a10(tmp_path: pathlib.Path) -> None:
  _, table = registry.figures()['table_a10'].draw(results.library(tmp_path))
  paper = table[table['preset'] == 'paper'].set_index('field')
  rates = cast(Any, paper.loc['model.inner.learning_rate'])
  assert rates[[style.MODEL_NAMES[m] for m in style.MODELS]].tolist() == [
      '0.03',
      '0.01',
      '0.3',
      '0.3',
  ]
  assert paper.loc['model.inner.batch_size', 'ANIL'] == '64'
  assert paper.loc['model.generator_num_hidden', 'MAML'] == ''


@pytest.mark.parametrize(
    'table, field, expected',  # Linear, nonlinear, ANIL, MAML.
    [
        ('a11', 'inner.learning_rate', ('0.1', '0.1', '0.01', '0.01')),
        ('a11', 'outer.learning_rate', ('3e-04', '3e-04', '3e-04', '0.001')),
        ('a11', 'outer.clip_norm', ('1', '2', '2', '2')),
        ('a11', 'hidden_dim', ('64', '64', '512', '368')),
        ('a12', 'inner.learning_rate', ('0.3', '0.1', '0.01', '0.01')),
        ('a12', 'outer.learning_rate', ('0.003', '0.001', '0.001', '0.001')),
        ('a12', 'outer.clip_norm', ('2', '2', '2', '1')),
        ('a12', 'num_hidden', ('2', '2', '2', '2')),
    ],
)
def test_hyperparameters_of_the_grid_worlds(
    tmp_path: pathlib.Path, table: str, field: str, expected: tuple[str, ...]
) -> None:
  _, found = registry.figures()[f'table_{table}'].draw(
      results.library(tmp_path)
  )
  paper = found[found['preset'] == 'paper'].set_index('field')
  values = cast(Any, paper.loc[f'model.{field}'])
  order = (*models.HYPERNETWORKS, 'anil', 'maml')
  for model, value in zip(order, expected, strict=True):
    assert float(values[style.MODEL_NAMES[model]]) == float(value), model


def test_published_values_stand_beside_those_of_figure_3e(
    tmp_path: pathlib.Path,
) -> None:
  made_up.write_by_rule(
      tmp_path, 'fig3e', made_up_rules.by_k(0.3, 0.8, 0.1, 0.5)
  )
  figure, table = registry.figures()['fig3e'].draw(results.library(tmp_path))
  row = cast(Any, table.set_index(['model', 'M', 'K'])).loc[
      ('nonlinear_hypernetwork', 8, 2)
  ]
  assert row['published_ood'] == pytest.approx(0.9605)
  shown = [
      line for trace in made_up.traces(figure) for line in trace.text or ()
  ]
  assert any('<br>(0.96)' in line for line in shown)


def test_figure_3a_shows_a_task_that_combines_modules(
    tmp_path: pathlib.Path,
) -> None:
  figure, table = registry.figures()['fig3a'].draw(results.library(tmp_path))
  modules = [
      t.text for t in made_up.layout(figure).annotations if 'module ' in t.text
  ]
  assert len(modules) >= 2
  generated = [trace.z for trace in made_up.traces(figure)[1:-1]]
  assert sum(generated[:-1]) == pytest.approx(generated[-1])
  sums = table.filter(like='p(').sum(axis=1)
  assert sums.to_numpy() == pytest.approx(1)


def test_a_task_of_the_published_teacher_sums_modules_in_both_layers() -> None:
  figure, table = fig3a.draw_task(3, 'paper')
  mask, *generated, _ = [
      np.asarray(trace.z) for trace in made_up.traces(figure)
  ]
  assert mask.shape == (8, 2) and mask.any(axis=0).all()
  generated = np.stack(generated).reshape(int(mask.sum()) + 1, 2, 32, 32)
  np.testing.assert_allclose(generated[:-1].sum(0), generated[-1], atol=1e-5)
  assert np.abs(generated).max(axis=(2, 3)).min() > 0.1
  assert 'Teacher of the paper preset, seed 3.' in made_up.texts(figure)
  assert set(table['preset']) == {'paper'}


def test_at_desktop_a_module_held_out_is_dashed() -> None:
  library = data.Library('/nowhere')
  figure, _ = registry.figures()['fig3b_desktop'].draw(library)
  curves = library.curves('fig3b', 'desktop')
  for dash, support in ('solid', 'random'), ('dash', 'non_compositional'):
    found = {
        'model.name': 'nonlinear_hypernetwork',
        'task.task_support': support,
        'split': 'ood',
        'metric': 'accuracy',
    }
    means = pick.rows(curves, found).groupby('step')['value'].mean()
    (line,) = (
        trace
        for trace in made_up.traces(figure)
        if trace.name == 'Nonlinear hypernetwork'
        and (trace.line.dash, trace.xaxis) == (dash, 'x')
    )
    np.testing.assert_allclose(line.x, 16 * means.index[means.index > 0])
    np.testing.assert_allclose(line.y, means[means.index > 0])

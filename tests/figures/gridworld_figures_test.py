"""Figures and claims of the grid worlds, on made-up results."""

from collections.abc import Callable
import json
import pathlib
from typing import Any, cast

import pandas as pd
from plotly import colors
import pytest

from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import stats
from modular_hyperteacher.figures.plotting import style
from tests.helpers import made_up
from tests.helpers import results

FIGURES = ('fig4b', 'fig4c', 'fig4e', 'fig4f', 'fig_a8', 'fig_a9', 'fig_a10')


def write(
    root: pathlib.Path,
    experiment: str,
    rule: Callable[[Any, str], float],
    left_out: Callable[[Any], bool] = lambda config: False,
) -> pathlib.Path:
  """Writes laptop runs; `rule(config, split)` is the mean of every metric."""
  config = plugins.config_of(experiment).get_config()

  def measure(run: sweeps.Run) -> made_up.Summary | None:
    if left_out(run.config):
      return None
    # Seeds differ, and not by the same in every run.
    tilt = int(sweeps.hash_of(run.run_id), 16) % 5 + 1
    deviations = [
        1e-3 * tilt * (-1) ** i * (i + 1)
        for i in range(len(run.config['training']['seeds']))
    ]

    def of_split(split: str) -> dict[str, list[float]]:
      values = [rule(run.config, split) + d for d in deviations]
      return dict.fromkeys(('accuracy', 'accuracy_all', 'loss'), values)

    return {split: of_split(split) for split in ('valid', 'test', 'ood')}

  return made_up.write_experiment(root, config, measure)


def by_cell(
    modular: dict[str, float], monolithic: dict[str, float]
) -> Callable[[Any, str], float]:
  """A rule: kind of model -> support -> OOD value."""

  def rule(config: Any, split: str) -> float:
    kind = config['model']['name'] in style.HYPERNETWORKS
    of_support = modular if kind else monolithic
    value = of_support[config['task']['task_support']]
    return 0.9 if split == 'test' else value

  return rule


def supports(compositional: float, other: float) -> dict[str, float]:
  return {'random': compositional, 'non_compositional': other}


def by_size(growth: float) -> Callable[[Any, str], float]:
  """A rule: 0.5 times a power of the student's size, relative to 32 × 8."""

  def rule(config: Any, split: str) -> float:
    del split
    model = config['model']
    size = model['hidden_dim'] * model['num_modules'] / 256
    return 0.5 * size**growth

  return rule


# Figures.


@pytest.mark.parametrize('name', FIGURES)
def test_names_what_is_missing(tmp_path: pathlib.Path, name: str) -> None:
  """No run at all; then all but the nonlinear hypernetwork's."""
  figure, table = registry.figures()[name].draw(results.library(tmp_path))
  assert 'no finished runs' in made_up.texts(figure)
  assert len(table)
  experiment = registry.figures()[name].experiments[0]
  write(
      tmp_path,
      experiment,
      lambda config, split: 0.5,
      lambda config: config['model']['name'] == 'nonlinear_hypernetwork',
  )
  figure, table = registry.figures()[name].draw(results.library(tmp_path))
  texts = made_up.texts(figure).replace('<br>', ' ')
  assert 'laptop scale, 3 seeds' in texts
  assert 'not the published scale' in texts
  is_of_goals = experiment in ('fig4e', 'fig_a10')
  assert ('mazes of 7 \N{MULTIPLICATION SIGN} 7 cells' in texts) == is_of_goals
  assert 'runs are missing: Nonlinear hypernetwork' in texts
  has_more = experiment in ('fig4c', 'fig4e', 'fig_a10')
  preset = ':workstation' if has_more else ''
  assert f'--config=configs/{experiment}.py{preset} trains all' in texts
  assert 'no run' in texts
  assert (table['num_seeds'] == 0).any() and (table['num_seeds'] == 3).any()


@pytest.mark.parametrize('name', FIGURES)
def test_what_older_runs_did_not_measure_is_said(
    tmp_path: pathlib.Path, name: str
) -> None:
  """Runs without the figure's metric are no reason not to draw."""
  experiment = registry.figures()[name].experiments[0]
  config = plugins.config_of(experiment).get_config('laptop')
  other = {split: {'other': [1.0] * 3} for split in ('valid', 'test', 'ood')}
  made_up.write_experiment(tmp_path, config, lambda run: other)
  figure, _ = registry.figures()[name].draw(results.library(tmp_path))
  assert 'not measured' in made_up.texts(figure).replace('<br>', ' ')


def test_hypernetworks_of_as_many_modules_as_published_are_drawn_beside(
    tmp_path: pathlib.Path,
) -> None:
  write(tmp_path, 'fig4e', lambda config, split: 0.5)
  write(
      tmp_path,
      'fig_a10',
      lambda config, split: (
          config['model']['num_modules'] / 100
          + config['model']['hidden_dim'] / 1000
      ),
  )
  figure, table = registry.figures()['fig4e'].draw(results.library(tmp_path))
  panels = [a.text for a in made_up.layout(figure).annotations]
  assert '8 modules' in panels
  heights = [t.y[0] for t in made_up.traces(figure) if t.type == 'bar']
  # Not those of 32 modules, nor the wider ones.
  assert heights[-2:] == pytest.approx([0.112] * 2, abs=0.01)
  assert min(heights[:-2]) == pytest.approx(0.5, abs=0.01)
  assert table['ood_mean'].tail(2).max() < 0.2


def test_bars_are_means_of_ood_tasks_beside_test_tasks(
    tmp_path: pathlib.Path,
) -> None:
  rule = by_cell(supports(0.3, 0.6), supports(0.4, 0.5))
  write(tmp_path, 'fig4c', rule)
  figure, table = registry.figures()['fig4c'].draw(results.library(tmp_path))
  heights = [t.y[0] for t in made_up.traces(figure) if t.type == 'bar']
  expected = [0.4, 0.4, 0.3, 0.3, 0.5, 0.5, 0.6, 0.6]
  assert heights == pytest.approx(expected, abs=0.01)
  beside = [
      t.y[0]
      for t in made_up.traces(figure)
      if t.type == 'scatter' and t.marker.symbol == 'diamond' and t.y[0]
  ]
  assert beside == pytest.approx([0.9] * 8, abs=0.01)
  assert '2.5 × the mean squared error' in made_up.texts(figure)
  assert 'lower is better' in made_up.layout(figure).yaxis.title.text
  measured = table['test_loss_mean'].dropna().to_numpy()
  assert measured == pytest.approx([0.9] * 8, abs=0.01)
  assert table['relative_return_mean'].isna().all()  # Not measured.


@pytest.mark.parametrize(
    'name, metric, num_bars',
    [
        ('acting_success', 'success', 6),
        ('acting_paths', 'path_ratio', 6),
        ('acting_return', 'relative_return', 6),
        ('acting_connected', 'relative_return', 2),
    ],
)
def test_acting_is_shown_of_all_models_and_supports(
    tmp_path: pathlib.Path, name: str, metric: str, num_bars: int
) -> None:
  """Twice the number of bars; then without one model's runs."""
  level = {model: 0.1 * i for i, model in enumerate(style.MODELS, start=1)}
  expected = [0.1, 0.1, 0.2, 0.2, 0.3, 0.4][
      -num_bars:
  ]  # Monolithic ones: two widths.

  def measure(run: sweeps.Run) -> made_up.Summary | None:
    values = [level[run.config['model']['name']] + d for d in made_up.SPREAD]
    return {split: {metric: values} for split in ('valid', 'test', 'ood')}

  def draw(root: pathlib.Path) -> tuple[Any, pd.DataFrame]:
    for experiment in registry.figures()[name].experiments:
      preset = sweeps.full_preset(experiment, 'laptop')
      config = plugins.config_of(experiment).get_config(preset)
      if root.name == 'some':
        config.sweep = tuple(
            {
                field: [v for v in values if 'nonlinear' not in str(v)]
                for field, values in grid.items()
            }
            for grid in config.sweep
        )
      made_up.write_experiment(root, config, measure)
    return registry.figures()[name].draw(results.library(root))

  figure, table = draw(tmp_path / 'all')
  heights = [t.y[0] for t in made_up.traces(figure) if t.type == 'bar']
  assert len(heights) == len(table) == 2 * num_bars
  assert heights == pytest.approx(2 * expected)
  assert 'Not in the paper' in made_up.texts(figure)
  assert 'no run' not in made_up.texts(figure)
  figure, _ = draw(tmp_path / 'some')
  assert 'runs are missing: Nonlinear hypernetwork' in made_up.texts(figure)
  empty, _ = registry.figures()[name].draw(results.library(tmp_path / 'none'))
  assert 'no finished runs' in made_up.texts(empty)


def test_tables_show_the_best_evaluation_beside_the_last(
    tmp_path: pathlib.Path,
) -> None:
  write(tmp_path, 'fig4c', by_cell(supports(0.3, 0.6), supports(0.4, 0.5)))
  folder = tmp_path / 'fig4c/laptop'
  for path in folder.glob('random-anil-*/summary.json'):
    summary = json.loads(path.read_text())
    best = summary['best_validation']['ood']
    best['loss'] = [0.1, 0.2, 0.3]
    path.write_text(json.dumps(summary))
  _, table = registry.figures()['fig4c'].draw(results.library(tmp_path))
  row = cast(Any, table.set_index(['model', 'width', 'task support'])).loc[
      'anil', 128, 'random'
  ]
  assert row['ood_loss_mean'] == pytest.approx(0.4, abs=0.02)
  assert row['ood_loss_best_mean'] == pytest.approx(0.2)
  assert row['ood_loss_best_se'] == pytest.approx(0.1 / 3**0.5)
  assert 'r2_best_mean' not in table


def test_figure_4f_shows_the_fall_seed_by_seed(tmp_path: pathlib.Path) -> None:
  rule = by_cell(supports(0.8, 0.5), supports(0.6, 0.65))
  write(tmp_path, 'fig4e', rule)
  figure, table = registry.figures()['fig4f'].draw(results.library(tmp_path))
  heights = [t.y[0] for t in made_up.traces(figure) if t.type == 'bar']
  assert heights == pytest.approx([-0.05, -0.05, 0.3, 0.3], abs=0.01)
  table = table.dropna()  # No results for the larger ANIL and MAML.
  assert list(table['model']) == list(style.MODELS)
  assert list(table['fall_mean']) == pytest.approx(heights)
  runs = results.library(tmp_path).values('fig4e')
  by_seed = [
      pick.values(runs, {'model.name': 'maml', 'task.task_support': s}, 'ood')
      for s in ('random', 'non_compositional')
  ]
  error = (by_seed[0] - by_seed[1]).sem()
  assert table.set_index('model')['fall_se']['maml'] == pytest.approx(error)


@pytest.mark.parametrize(
    'name, colours', [('fig_a8', 'Cividis_r'), ('fig_a10', 'Cividis')]
)
def test_heat_maps_show_every_size(
    tmp_path: pathlib.Path, name: str, colours: str
) -> None:
  write(tmp_path, name, by_size(0.1))
  figure, _ = registry.figures()[name].draw(results.library(tmp_path))
  modules = (16, 64) if name == 'fig_a8' else (8, 32)
  for trace in made_up.traces(figure):
    for row, num_modules in zip(trace.z, modules, strict=True):
      for value, width in zip(row, (32, 64), strict=True):
        if (name, width, num_modules) == ('fig_a8', 64, 64):
          assert value is None  # Not part of the preset.
          continue
        expected = 0.5 * (width * num_modules / 256) ** 0.1
        assert value == pytest.approx(expected, abs=0.01)
  # Bright is better: the lower loss, the higher accuracy.
  scale = colors.get_colorscale(colours)
  assert made_up.layout(figure).coloraxis.colorscale[0][1] == scale[0][1]


# Claims.


@pytest.mark.parametrize(
    'claim_id, experiment, modular, monolithic, verdict',
    [
        ('4C-1', 'fig4c', supports(0.3, 0.6), supports(0.4, 0.5), 'SUPPORTED'),
        (
            '4C-1',
            'fig4c',
            supports(0.4, 0.6),
            supports(0.3, 0.5),
            'CONTRADICTED',
        ),
        ('4C-2', 'fig4c', supports(0.3, 0.6), supports(0.4, 0.5), 'SUPPORTED'),
        (
            '4C-2',
            'fig4c',
            supports(0.6, 0.3),
            supports(0.4, 0.5),
            'CONTRADICTED',
        ),
        ('4C-2', 'fig4c', supports(0.5, 0.5), supports(0.4, 0.5), 'UNDECIDED'),
        ('4E', 'fig4e', supports(0.8, 0.5), supports(0.7, 0.6), 'SUPPORTED'),
        ('4E', 'fig4e', supports(0.6, 0.5), supports(0.7, 0.6), 'CONTRADICTED'),
        ('4F', 'fig4e', supports(0.8, 0.5), supports(0.7, 0.6), 'SUPPORTED'),
        # Lower in the end, yet by less.
        ('4F', 'fig4e', supports(0.6, 0.5), supports(0.9, 0.6), 'CONTRADICTED'),
        ('A9', 'fig4e', supports(0.8, 0.5), supports(0.7, 0.6), 'SUPPORTED'),
        # Better, but it costs no more; worse, though it costs more.
        ('A9', 'fig4e', supports(0.8, 0.7), supports(0.7, 0.6), 'UNDECIDED'),
        ('A9', 'fig4e', supports(0.6, 0.2), supports(0.7, 0.6), 'CONTRADICTED'),
    ],
)
def test_claims_on_models(
    tmp_path: pathlib.Path,
    claim_id: str,
    experiment: str,
    modular: dict[str, float],
    monolithic: dict[str, float],
    verdict: str,
) -> None:
  write(tmp_path, experiment, by_cell(modular, monolithic))
  entry = results.entry(tmp_path, claim_id)
  assert entry['verdict'] == verdict, entry['note']
  assert (entry['num_seeds'], entry['preset']) == (3, 'laptop')


@pytest.mark.parametrize(
    'connected, disconnected, verdict',
    [(0.3, 0.5, 'SUPPORTED'), (0.5, 0.3, 'CONTRADICTED')],
)
def test_claim_4b(
    tmp_path: pathlib.Path, connected: float, disconnected: float, verdict: str
) -> None:
  of_support = {'connected': connected, 'disconnected': disconnected}
  write(tmp_path, 'fig4b', by_cell(of_support, of_support))
  entry = results.entry(tmp_path, '4B')
  assert entry['verdict'] == verdict
  assert entry['effect'] == pytest.approx(disconnected - connected, abs=0.01)


def test_seeds_of_one_support_alone_do_not_undecide_a9(
    tmp_path: pathlib.Path,
) -> None:
  write(tmp_path, 'fig4e', by_cell(supports(0.8, 0.1), supports(0.5, 0.4)))
  frame = results.library(tmp_path).values('fig4e')
  linear = frame['model.name'] == 'linear_hypernetwork'
  more = frame[linear & (frame['task.task_support'] == 'random')]
  frame = pd.concat([frame, more.assign(seed=more['seed'] + 10)])
  claim = results.claim('A9')
  found = claim.compare(pick.select_conditions(frame, claim.cell)[0])
  judged = verdicts.judge(found, claim.cell)
  assert judged.verdict == 'SUPPORTED', judged.note
  assert {tested['num_seeds'] for tested in judged.tested} == {3}


def test_a_seed_without_a_whole_demonstration_leaves_a9_undecided(
    tmp_path: pathlib.Path,
) -> None:
  write(tmp_path, 'fig4e', by_cell(supports(0.8, 0.1), supports(0.5, 0.4)))
  frame = results.library(tmp_path).values('fig4e')
  seed = frame['seed'].min()
  none = (frame['model.name'] == 'maml') & (frame['seed'] == seed)
  none &= frame['task.task_support'] == 'random'
  frame.loc[none & (frame['metric'] == 'accuracy_all'), 'value'] = 0.0
  claim = results.claim('A9')
  found = claim.compare(pick.select_conditions(frame, claim.cell)[0])
  judged = verdicts.judge(found, claim.cell)
  assert judged.verdict == 'UNDECIDED'
  assert judged.note.startswith(f'no finite value of seed {seed}')


@pytest.mark.parametrize(
    'claim_id, num_comparisons', [('4E', 6), ('4F', 4), ('A9', 10)]
)
def test_a_width_counts_where_it_was_trained(
    tmp_path: pathlib.Path, claim_id: str, num_comparisons: int
) -> None:
  """Wide ANIL has runs with compositional support only."""
  write(tmp_path, 'fig4e', by_cell(supports(0.8, 0.1), supports(0.5, 0.4)))
  frame = results.library(tmp_path).values('fig4e')
  rows = (frame['model.name'] == 'anil') & (
      frame['task.task_support'] == 'random'
  )
  wide = frame[rows].assign(**{'model.hidden_dim': 512})
  narrow = frame[frame['model.hidden_dim'] != 480]
  claim = results.claim(claim_id)
  found = list(claim.compare(pd.concat([narrow, wide])))
  assert len(found) == num_comparisons
  assert verdicts.judge(found, claim.cell).verdict == 'SUPPORTED'


def test_a_difference_in_differences_is_taken_seed_by_seed(
    tmp_path: pathlib.Path,
) -> None:
  write(tmp_path, 'fig4e', by_cell(supports(0.8, 0.5), supports(0.7, 0.6)))
  entry = results.entry(tmp_path, '4F')
  runs = results.library(tmp_path).values('fig4e')

  def fall(model: str) -> pd.Series:
    one, other = (
        pick.values(runs, {'model.name': model, 'task.task_support': s}, 'ood')
        for s in ('random', 'non_compositional')
    )
    return one - other

  gaps = [
      fall(modular) - fall(monolithic)
      for modular in style.HYPERNETWORKS
      for monolithic in style.MONOLITHIC
  ]
  weakest = min(
      gaps,
      key=lambda gap: stats.mean(gap).value / stats.mean(gap).standard_error,
  )
  assert entry['effect'] == pytest.approx(weakest.mean())
  assert entry['standard_error'] == pytest.approx(weakest.sem())


@pytest.mark.parametrize(
    'claim_id, growth, verdict',
    [
        ('A8', -0.3, 'SUPPORTED'),  # Falling, as it may.
        ('A8', 0.01, 'SUPPORTED'),  # With four times the modules by 1%.
        ('A8', 0.1, 'CONTRADICTED'),  # By 15%.
        ('A10', 0.02, 'SUPPORTED'),  # By 0.02.
        ('A10', 0.1, 'CONTRADICTED'),  # By 0.12.
        ('A10', -0.1, 'CONTRADICTED'),
    ],
)
def test_claims_on_sizes(
    tmp_path: pathlib.Path, claim_id: str, growth: float, verdict: str
) -> None:
  write(tmp_path, f'fig_{claim_id.lower()}', by_size(growth))
  entry = results.entry(tmp_path, claim_id)
  assert entry['verdict'] == verdict, entry['note']
  assert entry['num_seeds'] == 3


def test_a_loss_raised_by_modules_alone_is_found(
    tmp_path: pathlib.Path,
) -> None:
  """Wider is better by more than more modules are worse."""

  def rule(config: Any, split: str) -> float:
    del split
    model = config['model']
    return 0.5 * (32 / model['hidden_dim']) + 0.1 * (model['num_modules'] > 32)

  write(tmp_path, 'fig_a8', rule)
  assert results.entry(tmp_path, 'A8')['verdict'] == 'CONTRADICTED'


@pytest.mark.parametrize('claim_id', ['A8', 'A10'])
def test_claims_on_sizes_need_all_sizes(
    tmp_path: pathlib.Path, claim_id: str
) -> None:
  largest = {'A8': (64, 16), 'A10': (64, 32)}[claim_id]

  def left_out(config: Any) -> bool:
    model = config['model']
    return (model['hidden_dim'], model['num_modules']) == largest

  write(tmp_path, f'fig_{claim_id.lower()}', by_size(0.0), left_out)
  entry = results.entry(tmp_path, claim_id)
  assert entry['verdict'] == 'NOT RUN'
  assert 'width = 64' in entry['note']

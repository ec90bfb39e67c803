"""Figures and claims of in-context learners, from made-up results."""

from collections.abc import Iterator, Mapping
import json
import pathlib
from typing import Any

import pytest

from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.studies.in_context import identities
from modular_hyperteacher.studies.in_context import reference_lines
from modular_hyperteacher.studies.in_context.configs import in_context as config
from modular_hyperteacher.studies.in_context.configs import (
    in_context_hyperteacher,
)
from modular_hyperteacher.studies.in_context.figures import in_context_sizes
from tests.helpers import made_up
from tests.helpers import results

_STEPS = (1000, 2000, 3000, 9000, 15_000, 27_000, 60_000)
_VANILLA, _BOTTLENECK = 'transformer', 'hypernetwork_transformer'
_METRICS = 'loss', 'prediction_r2', 'decoding_r2'
# (model, support, split, metric, step or None for all) -> what the paper says.
_Key = tuple[str, str, str, str, int | None]
_PUBLISHED: dict[_Key, float] = {
    (_BOTTLENECK, 'ring_chords', 'test', 'prediction_r2', None): 0.999,
    (_BOTTLENECK, 'ring_chords', 'ood', 'prediction_r2', None): 0.98,
    (_BOTTLENECK, 'ring_chords', 'ood', 'decoding_r2', None): 0.85,
    (_BOTTLENECK, 'ring_chords', 'unrelated', 'prediction_r2', None): -0.3,
    (_BOTTLENECK, 'ring', 'ood', 'prediction_r2', None): 0.9,
    (_BOTTLENECK, 'triangles', 'ood', 'prediction_r2', None): 0.78,
    (_VANILLA, 'ring_chords', 'test', 'prediction_r2', 3000): 0.96,
    (_VANILLA, 'ring_chords', 'test', 'prediction_r2', None): 0.99,
    (_VANILLA, 'ring_chords', 'ood', 'prediction_r2', None): 0.86,
    (_VANILLA, 'ring_chords', 'ood', 'decoding_r2', 2000): 0.2,
    (_VANILLA, 'ring_chords', 'ood', 'decoding_r2', None): 0.85,
    (_VANILLA, 'ring_chords', 'unrelated', 'prediction_r2', None): 0.15,
    (_VANILLA, 'ring', 'ood', 'prediction_r2', None): 0.859,
    (_VANILLA, 'triangles', 'ood', 'prediction_r2', None): 0.857,
}
_SPLITS = ('valid', 'test', 'ood', 'unrelated')
_ACCURACIES = {
    _VANILLA: 0.6,
    _BOTTLENECK: 0.7,
    'nonlinear_hypernetwork': 0.9,
    'linear_hypernetwork': 0.85,
    'anil': 0.5,
    'maml': 0.55,
}


def _values(
    run: sweeps.Run, step: int, values: Mapping[_Key, float]
) -> Iterator[tuple[int, str, str, float]]:
  """Yields seed, split, metric and value; models' seeds differ in spread."""
  name, support = (
      run.config['model']['name'],
      run.config['task']['task_support'],
  )
  spread = 0.001 if name == _VANILLA else 0.002
  for index, seed in enumerate(run.config['training']['seeds']):
    for split in _SPLITS:
      for metric in _METRICS:
        always = values.get((name, support, split, metric, None), 0.5)
        value = values.get((name, support, split, metric, step), always)
        # A step's noise is not that of another step.
        yield seed, split, metric, value + spread * index + 1e-8 * step * index


def write(
    root: pathlib.Path,
    changes: Mapping[_Key, float] | None = None,
    without: tuple[str, str] | None = None,
) -> data.Library:
  """Returns a library with made-up runs; `without` is a model and a support."""
  values = _PUBLISHED | (dict(changes) if changes else {})

  def last_step(run: sweeps.Run) -> int:
    return run.config['training']['num_outer_steps']

  def measure(run: sweeps.Run) -> made_up.Summary | None:
    cell = run.config['model']['name'], run.config['task']['task_support']
    if cell == without:
      return None
    found: dict[str, dict[str, list[float]]] = {}
    for _, split, metric, value in _values(run, last_step(run), values):
      found.setdefault(split, {}).setdefault(metric, []).append(value)
    return found

  def rows(run: sweeps.Run) -> Iterator[made_up.Row]:
    for step in _STEPS:
      if step <= last_step(run):
        for row in _values(run, step, values):
          yield step, *row

  made_up.write_experiment(
      root, config.get_config('workstation'), measure, rows=rows
  )
  return results.library(root)


def write_hyperteacher(
    root: pathlib.Path, changes: Mapping[str, float] | None = None
) -> data.Library:
  """Returns a library with runs on the hyperteacher and those of Figure 3B."""
  accuracies = _ACCURACIES | (dict(changes) if changes else {})

  def measure(run: sweeps.Run) -> made_up.Summary | None:
    accuracy = accuracies[run.config['model']['name']]
    if run.config['task']['task_support'] != 'random':
      accuracy -= 0.2
    spread = 0.001 * (1 + len(run.config['model']['name']) % 3)
    seeds = range(len(run.config['training']['seeds']))
    return {
        split: {
            'accuracy': [accuracy + spread * i for i in seeds],
            'loss': [1.0 for _ in seeds],
            'decoding_r2': [0.4 for _ in seeds],
            'r2': [0.6 for _ in seeds],
        }
        for split in ('test', 'ood')
    }

  for config_ in (
      in_context_hyperteacher.get_config(),
      fig3b.get_config('workstation'),
  ):
    made_up.write_experiment(root, config_, measure)
  return results.library(root)


def _verdict(claim_id: str, library: data.Library) -> str:
  return results.judge(claim_id, library)['verdict']


_IDS = ('IC-1', 'IC-1x', *(f'IC-{number}' for number in range(2, 10)))


def _key(
    model: str,
    support: str,
    split: str,
    metric: str = 'prediction_r2',
    step: int | None = None,
) -> _Key:
  return model, support, split, metric, step


@pytest.mark.parametrize('claim_id', _IDS)
def test_claims_hold_for_what_the_paper_found(
    claim_id: str, tmp_path: pathlib.Path
) -> None:
  assert _verdict(claim_id, write(tmp_path)) == verdicts.SUPPORTED


_PLAIN, _NARROW = (_VANILLA, 'ring_chords'), (_BOTTLENECK, 'ring_chords')


@pytest.mark.parametrize(
    'claim_id, key, value',
    [
        ('IC-1', _key(*_NARROW, 'ood'), 0.8),
        ('IC-1x', _key(*_NARROW, 'ood'), 0.88),
        ('IC-1x', _key(*_PLAIN, 'ood'), 0.99),
        ('IC-2', _key(*_NARROW, 'test'), 0.98),
        ('IC-3', _key(*_PLAIN, 'ood', 'decoding_r2'), 0.6),
        ('IC-4', _key(*_PLAIN, 'ood', 'decoding_r2', 2000), 0.7),
        ('IC-5', _key(*_PLAIN, 'ood', 'prediction_r2', 3000), 0.8),
        ('IC-5', _key(*_PLAIN, 'test', 'prediction_r2', 3000), 0.995),
        ('IC-6', _key(*_NARROW, 'unrelated'), 0.05),
        ('IC-6', _key(*_PLAIN, 'unrelated'), -0.4),
        ('IC-7', _key(_BOTTLENECK, 'triangles', 'ood'), 0.95),
        ('IC-8', _key(_VANILLA, 'triangles', 'ood'), 0.8),
        ('IC-8', _key(_VANILLA, 'triangles', 'ood'), 0.9),
        ('IC-9', _key(*_NARROW, 'ood', 'prediction_r2', 27_000), 0.85),
    ],
)
def test_claims_are_contradicted_by_the_opposite(
    claim_id: str, key: _Key, value: float, tmp_path: pathlib.Path
) -> None:
  library = write(tmp_path, {key: value})
  assert _verdict(claim_id, library) == verdicts.CONTRADICTED


@pytest.mark.parametrize(
    'claim_id, key, value',
    [
        # The seeds differ by up to 0.002 between the models.
        ('IC-1', _key(*_NARROW, 'ood'), 0.859),
        ('IC-2', _key(*_NARROW, 'test'), 0.989),
        ('IC-4', _key(*_PLAIN, 'ood', 'decoding_r2', 2000), 0.651),
        ('IC-6', _key(*_PLAIN, 'unrelated'), -0.299),
    ],
)
def test_small_differences_decide_nothing(
    claim_id: str, key: _Key, value: float, tmp_path: pathlib.Path
) -> None:
  library = write(tmp_path, {key: value})
  assert _verdict(claim_id, library) == verdicts.UNDECIDED


@pytest.mark.parametrize(
    'without, not_run',
    [
        ((_VANILLA, 'ring_chords'), {*_IDS} - {'IC-7', 'IC-8', 'IC-9'}),
        (_NARROW, {*_IDS} - {'IC-5', 'IC-7', 'IC-8'}),
        ((_VANILLA, 'ring'), {'IC-8'}),
        ((_BOTTLENECK, 'ring'), {'IC-7', 'IC-9'}),
    ],
)
def test_without_a_run_its_claims_are_not_judged(
    without: tuple[str, str], not_run: set[str], tmp_path: pathlib.Path
) -> None:
  library = write(tmp_path, without=without)
  found = {claim_id: _verdict(claim_id, library) for claim_id in _IDS}
  for claim_id, verdict in found.items():
    expected = claim_id in not_run
    assert (verdict == verdicts.NOT_RUN) == expected, claim_id


def test_a_bundle_keeps_what_the_claims_read(tmp_path: pathlib.Path) -> None:
  """Curves of R^2 among it."""
  own, bundled = tmp_path / 'own', tmp_path / 'bundled'
  library = write(own)
  bundles.write_bundle(
      own / 'in_context' / 'laptop', bundled / 'in_context' / 'laptop'
  )
  again = data.Library(tmp_path / 'none', bundled)
  for claim_id in _IDS:
    assert _verdict(claim_id, again) == _verdict(claim_id, library)


@pytest.mark.parametrize(
    'claim_id, changes, verdict',
    [
        ('IB-1', {}, verdicts.SUPPORTED),
        ('IB-2', {}, verdicts.SUPPORTED),
        ('IB-1', {_VANILLA: 0.8}, verdicts.CONTRADICTED),
        ('IB-2', {_BOTTLENECK: 0.95}, verdicts.CONTRADICTED),
        ('IB-1', {_BOTTLENECK: 0.6}, verdicts.UNDECIDED),
    ],
)
def test_our_claims_on_the_hyperteacher(
    claim_id: str,
    changes: dict[str, float],
    verdict: str,
    tmp_path: pathlib.Path,
) -> None:
  assert _verdict(claim_id, write_hyperteacher(tmp_path, changes)) == verdict


def test_claims_on_the_hyperteacher_compare_with_every_width(
    tmp_path: pathlib.Path,
) -> None:
  write_hyperteacher(tmp_path)
  config = fig3b.get_config()
  config.models.nonlinear_hypernetwork.hidden_dim = 64
  wide = {'ood': {'accuracy': [0.2, 0.201, 0.203], 'loss': [1.0] * 3}}
  made_up.write_experiment(
      tmp_path,
      config,
      lambda run: wide
      if run.config['model']['name'] == 'nonlinear_hypernetwork'
      else None,
  )
  library = results.library(tmp_path)
  assert _verdict('IB-2', library) == verdicts.CONTRADICTED


def test_claims_on_the_hyperteacher_compare_at_one_scale(
    tmp_path: pathlib.Path,
) -> None:
  """Own runs of Figure 3B at another scale do not replace bundled ones."""
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED, 'desktop')
  library = data.Library(tmp_path)
  assert set(library.values('fig3b')['preset']) == {'desktop'}
  assert _verdict('IB-2', library) == _verdict('IB-2', data.Library('none'))
  assert _verdict('IB-2', library) != verdicts.NOT_RUN


def test_claims_on_the_hyperteacher_need_both_kinds_of_runs(
    tmp_path: pathlib.Path,
) -> None:
  made_up.write_runs(tmp_path, made_up.AS_CLAIMED)
  library = results.library(tmp_path)
  for claim_id in ('IB-1', 'IB-2'):
    assert _verdict(claim_id, library) == verdicts.NOT_RUN


def test_the_figure_of_sizes_names_missing_runs(
    tmp_path: pathlib.Path,
) -> None:
  figure, table = registry.figures()['in_context_sizes'].make(
      results.library(tmp_path)
  )
  assert 'no run' in made_up.texts(figure)
  columns = [style.column_name(c) for c in in_context_sizes.CELL[1:]]
  sizes = set(table[columns].itertuples(index=False, name=None))
  assert sizes == {(15, 64), (63, 64), (31, 128)}
  assert (table['num_seeds'] == 0).all()


def test_identities_are_what_the_code_measures(tmp_path: pathlib.Path) -> None:
  stored = identities.MEASURED.load().set_index(['identity', 'seed'])['value']
  for identity in (*identities.ATTENTION, identities.CONSTRUCTION):
    again = identities.measure(identity, 0)
    assert again == pytest.approx(stored[identity, 0], abs=1e-6)
  library = results.library(tmp_path)
  for claim_id in ('HY-1', 'IC-10'):
    assert _verdict(claim_id, library) == verdicts.SUPPORTED


def test_the_figure_draws_curves_and_reference_lines(
    tmp_path: pathlib.Path,
) -> None:
  figure, table = registry.figures()['in_context'].make(write(tmp_path))
  assert (table['num_seeds'] == 3).all() and len(table) == 6
  drawn = [t for t in made_up.traces(figure) if t.mode == 'lines' and len(t.x)]
  by_panel = {
      axis: {t.name for t in drawn if t.xaxis == axis and t.name}
      for axis in ('x', 'x2', 'x3', 'x4', 'x5')
  }
  models = {'transformer', 'hypernetwork transformer'}
  lines = {'best mix of training functions', 'nearest one', 'their mean'}
  for axis in ('x', 'x2', 'x3'):
    assert by_panel[axis] >= models | lines
  for axis in ('x4', 'x5'):
    assert by_panel[axis] >= models
  (mix,) = [
      t
      for t in drawn
      if t.xaxis == 'x'
      and t.name == 'best mix of training functions'
      and t.x[0] == 0
  ]
  table = reference_lines.MEASURED['in_context'].load()
  chosen = table.query(
      "task_support == 'ring_chords' and split == 'ood' and predictor == 'mix'"
  )
  assert mix.y[0] == pytest.approx(chosen['r2'].mean())


def test_the_comparison_shows_every_learner_in_four_panels(
    tmp_path: pathlib.Path,
) -> None:
  figure, table = registry.figures()['in_context_hyperteacher'].make(
      write_hyperteacher(tmp_path)
  )
  by_row: Any = table.set_index(['learner', 'infers'])
  transformer = by_row.loc['transformer', 'in context']
  assert transformer['new_mean'] == pytest.approx(
      _ACCURACIES[_VANILLA], abs=0.01
  )
  maml = by_row.loc['MAML, 218 wide', '10 gradient steps']
  assert maml['new_mean'] == pytest.approx(_ACCURACIES['maml'], abs=0.01)
  assert maml['decoding_mean'] != 0.4
  assert (table['cost_laptop'] > 0).all()
  missing = table.loc[table['num_seeds'] == 0, 'infers']
  assert len(missing) == 4
  assert all(name.startswith('forward pass') for name in missing)
  text = made_up.layout(figure).meta['caption']
  (line,) = (line for line in text if 'no finished run' in line)
  assert line.startswith('amortised: ')
  assert line.endswith('. --config=amortised trains all.')
  # Three reference lines in each of two panels.
  lines = [t for t in made_up.traces(figure) if t.mode == 'lines']
  assert sorted(t.xaxis for t in lines) == ['x'] * 3 + ['x2'] * 3
  assert {t.xaxis for t in made_up.traces(figure)} >= {'x', 'x2', 'x3', 'x4'}


def test_the_comparison_names_seeds_that_diverged(
    tmp_path: pathlib.Path,
) -> None:
  write_hyperteacher(tmp_path)
  path = next(tmp_path.glob('fig3b/laptop/*maml*/summary.json'))
  summary = json.loads(path.read_text()) | {'diverged': [2020]}
  path.write_text(json.dumps(summary))
  library = results.library(tmp_path)
  figure, _ = registry.figures()['in_context_hyperteacher'].make(library)
  text = ' '.join(made_up.layout(figure).meta['caption'])
  assert (
      f'Diverged, and left out of the means: 1 seed of {path.parent.name}'
      in text
  )


@pytest.mark.parametrize('name', ['in_context', 'in_context_hyperteacher'])
def test_figures_without_runs(name: str, tmp_path: pathlib.Path) -> None:
  figure, table = registry.figures()[name].make(results.library(tmp_path))
  assert 'no finished run' in made_up.texts(figure)
  assert (table['num_seeds'] == 0).all()

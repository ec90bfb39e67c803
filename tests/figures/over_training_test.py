"""Effects over training are the claims' own, at every evaluation."""

import json
import pathlib
from typing import Any

import pandas as pd
import pytest

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures.extensions import over_training
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.runs import run_folder
from tests.helpers import made_up
from tests.helpers import results

_CLAIMS = {claim.id: claim for claim in claims.known()}


def _write(root: pathlib.Path) -> data.Library:
  """Figure 3B's runs: hypernetworks gain 1e-4 per step, the others nothing."""

  def curve(run: sweeps.Run, step: int) -> float:
    return 0.5 + step * 1e-4 * ('hyper' in run.config['model']['name'])

  made_up.write_by_rule(
      root,
      'fig3b',
      lambda fields, split, metric: (
          0.8 if 'hyper' in fields['model.name'] else 0.5
      ),
      curve=curve,
  )
  for path in root.glob('fig3b/laptop/*/config.json'):
    folder = run_folder.RunFolder(path.parent)
    frame = folder.read_metrics()
    later = frame[frame['step'] == 500].assign(step=1000)
    later['value'] = 2 * later['value'] - 0.5
    folder.write_metrics(later.itertuples(index=False, name=None))
  return results.library(root)


def test_effects_are_those_of_each_evaluation(tmp_path: pathlib.Path) -> None:
  library = _write(tmp_path)
  found = list(over_training.at_steps(_CLAIMS['3B-1'], library))
  assert [step for step, _, _ in found][-2:] == [1000, 3000]
  by_step = {
      step: [c.estimate.value for c in compared] for step, _, compared in found
  }
  assert by_step[1000] == pytest.approx([0.1] * 8, abs=0.051)
  assert by_step[3000] == pytest.approx([0.3] * 8, abs=0.02)
  entry = verdicts.evaluate(_CLAIMS['3B-1'], library)
  assert by_step[3000] == [c['effect'] for c in entry['comparisons']]


def test_effects_are_of_the_scale_of_the_verdict(
    tmp_path: pathlib.Path,
) -> None:
  seeds, spread = tuple(range(2020, 2025)), (-0.01, 0.0, 0.01, 0.005, -0.005)
  for preset in ('laptop', 'desktop'):
    made_up.write_runs(tmp_path, made_up.AS_CLAIMED, preset, seeds, spread)
  library = data.Library(tmp_path / 'nothing', tmp_path)
  *_, (step, preset, compared) = over_training.at_steps(
      _CLAIMS['3B-1'], library
  )
  assert (step, preset) == (30_000, 'desktop')
  entry = verdicts.evaluate(_CLAIMS['3B-1'], library)
  assert entry['comparison'] in [one.name for one in compared]


def test_effects_are_shown_where_training_analyses(
    tmp_path: pathlib.Path,
) -> None:
  """R2 is not measured at every evaluation."""
  level = {'random': 0.6, 'non_compositional': 0.1}

  def rule(fields: dict[str, Any], split: str, metric: str) -> float:
    del split, metric
    return level.get(fields['task.task_support'], 0.3)

  made_up.write_by_rule(tmp_path, 'fig3c', rule)
  for path in tmp_path.glob('fig3c/laptop/*/config.json'):
    support = json.loads(path.read_text())['task']['task_support']
    folder = run_folder.RunFolder(path.parent)
    frame = folder.read_metrics()
    losses = frame[(frame['step'] == 500) & (frame['metric'] == 'loss')]
    r2 = losses.assign(metric='r2', value=level.get(support, 0.3))
    frame = pd.concat([
        *(losses.assign(step=step) for step in range(500, 3000, 500)),
        *(r2.assign(step=step) for step in (500, 1000, 2000)),
        frame[frame['step'] > 500],
    ])
    folder.write_metrics(frame.itertuples(index=False, name=None))
  rows = over_training.make_rows(_CLAIMS['3C'], results.library(tmp_path))
  assert sorted({step for _, _, step, *_ in rows}) == [500, 1000, 2000, 3000]


def test_effects_end_with_the_claims_own_runs(tmp_path: pathlib.Path) -> None:
  """Table A1 trains longer where Adam infers the latents."""
  made_up.write_by_rule(
      tmp_path,
      'table_a1',
      lambda *_: 0.5,
      curve=lambda run, step: step / 1e4,
      more_metrics=['alignment'],
  )
  for path in tmp_path.glob('table_a1/laptop/*/config.json'):
    folder = run_folder.RunFolder(path.parent)
    frame = folder.read_metrics().replace({'step': {500: 1000}})
    folder.write_metrics(frame.itertuples(index=False, name=None))
  library = results.library(tmp_path)
  steps = {
      name: [s for s, _, _ in over_training.at_steps(_CLAIMS[name], library)]
      for name in ('A1', 'A1-adam')
  }
  assert steps == {'A1': [300], 'A1-adam': [1000, 1500]}


def test_a_panel_per_claim_with_runs(tmp_path: pathlib.Path) -> None:
  library = _write(tmp_path)
  chosen = [_CLAIMS[name] for name in ('3B-1', '3B-2', '4E', 'TH-2')]
  figure, table = over_training.draw(chosen, library)
  assert set(table['claim']) == {'3B-1', '3B-2'}
  assert set(table['preset']) == {'laptop'}
  assert '3B-1: SUPPORTED' in made_up.texts(figure)
  published = {shape.x0 for shape in made_up.layout(figure).shapes}
  assert published == {200_000}
  last = table[(table['claim'] == '3B-1') & (table['step'] == 3000)]
  assert len(last) == 8 and (last['low'] > 0).all()
  # One comparison has no deviation.
  assert (last['low'] <= last['effect'] + 1e-9).all()
  assert (last['effect'] <= last['high'] + 1e-9).all()


def test_without_runs_there_is_no_panel(tmp_path: pathlib.Path) -> None:
  _, table = over_training.draw(claims.known(), results.library(tmp_path))
  assert table.empty and 'preset' in table


def test_derived_metrics_are_derived_at_every_step() -> None:
  """R2 of networks that are given the task is 1 - loss / variance."""
  library = data.Library(data.BUNDLED / 'nothing')
  claim = _CLAIMS['SG-7']
  curves = library.curves(claim.experiment)
  compared = list(over_training.at_steps(claim, library))
  assert len(compared) > 1
  for step, _, found in compared:
    comparison = found[0]
    means = []
    for sample in comparison.samples:
      rows = curves[
          (curves['step'] == step)
          & (curves['split'] == 'ood')
          & curves['run_id'].isin(sample.runs['run_id'])
      ].pivot_table('value', 'seed', 'metric', observed=True)
      means.append((1 - rows['loss'] / rows['variance']).mean())
    effect = means[0] - means[1]
    assert comparison.estimate.value == pytest.approx(effect, abs=1e-4), step

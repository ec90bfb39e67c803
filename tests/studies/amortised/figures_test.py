"""The figure and the claims of amortised inference, on made-up results."""

from collections.abc import Callable
import itertools
import pathlib
from typing import Any

import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.extensions import inference_cost
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.studies.amortised import figures
from tests.helpers import made_up
from tests.helpers import results

# Inference -> OOD accuracy with compositional support, R2.
_AS_CLAIMED = {
    'gradient': (0.80, 0.60),
    'amortised': (0.81, 0.65),
    'combined': (0.85, 0.62),
}


def _write(
    root: pathlib.Path, changes: Any = (), fall: float = 0.3
) -> data.Library:
  """Writes runs in which accuracy falls without compositional support."""
  values = _AS_CLAIMED | dict(changes)

  def rule(fields: dict[str, Any], split: str, metric: str) -> float:
    del split
    (inference,) = [
        name
        for name, model in itertools.product(figures.INFERENCE, figures.MODELS)
        if figures.make_cell(name, model, fields['task.task_support'])
        == {column: fields[column] for column in figures.CELL}
    ]
    accuracy, r2 = values[inference]
    if fields['task.task_support'] == 'non_compositional':
      accuracy -= fall
    return r2 if metric.startswith('r2') else accuracy

  made_up.write_by_rule(root, 'amortised', rule)
  return results.library(root)


@pytest.mark.parametrize('preset', presets.PRESETS)
def test_its_cells_are_what_the_config_describes(preset: str) -> None:
  described = [
      tuple(dict(sweeps.flatten(run.config))[c] for c in figures.CELL)
      for run in reference.described_runs('amortised', preset)
  ]
  drawn = [
      tuple(figures.make_cell(*cell).values())
      for cell in itertools.product(
          figures.INFERENCE, figures.MODELS, model_bars.COMPOSITIONAL
      )
  ]
  assert sorted(described) == sorted(drawn)


@pytest.mark.parametrize(
    'claim_id, changes, fall, verdict',
    [
        ('AM-1', {}, 0.3, 'SUPPORTED'),
        ('AM-1', {'amortised': (0.79, 0.6)}, 0.3, 'SUPPORTED'),  # Within 0.02.
        ('AM-1', {'amortised': (0.77, 0.6)}, 0.3, 'CONTRADICTED'),
        ('AM-2', {}, 0.3, 'SUPPORTED'),
        ('AM-2', {'combined': (0.80, 0.6)}, 0.3, 'CONTRADICTED'),
        ('AM-3', {}, 0.3, 'SUPPORTED'),
        ('AM-3', {'amortised': (0.81, 0.52)}, 0.3, 'CONTRADICTED'),
        ('AM-4', {}, 0.3, 'SUPPORTED'),
        ('AM-4', {}, -0.1, 'CONTRADICTED'),
    ],
)
def test_claims(
    tmp_path: pathlib.Path,
    claim_id: str,
    changes: dict[str, tuple[float, float]],
    fall: float,
    verdict: str,
) -> None:
  library = _write(tmp_path, changes, fall)
  entry = results.judge(claim_id, library)
  assert entry['verdict'] == verdict, entry['note']
  assert entry['num_seeds'] == 3
  assert "not the paper's" in results.claim(claim_id).sentence


def test_the_figure_shows_means_and_names_what_is_missing(
    tmp_path: pathlib.Path,
) -> None:
  library = _write(tmp_path)
  figure, table = figures.FIGURES['amortised'].draw(library)
  assert 'missing' not in made_up.texts(figure)
  by_row: Any = table.set_index(['infers', 'learner'])
  row = by_row.loc['forward pass, 3 steps', 'linear hypernetwork']
  assert row['new_held_out_mean'] == pytest.approx(0.55)
  assert row['decoding_held_out_mean'] == pytest.approx(0.62)
  shown = {trace.name: trace for trace in made_up.traces(figure) if trace.name}
  # A mark per way of inference and model.
  expected = [
      accuracy for accuracy, _ in _AS_CLAIMED.values() for _ in range(2)
  ]
  assert list(shown['new'].x) == pytest.approx(expected)
  assert (shown['cost paper'].x > shown['cost laptop'].x).all()
  for folder in tmp_path.glob('amortised/laptop/random-combined_linear*'):
    (folder / 'summary.json').unlink()
  figure, table = figures.FIGURES['amortised'].draw(results.library(tmp_path))
  missing = made_up.layout(figure).meta['caption'][1]
  assert '1 of 12 runs are missing: amortised linear' in missing
  assert table['new_mean'].isna().sum() == 1
  assert table['num_seeds'].tolist() == [3] * 6


def test_it_can_be_drawn_without_a_run(tmp_path: pathlib.Path) -> None:
  figure, table = figures.FIGURES['amortised'].draw(results.library(tmp_path))
  assert 'no finished runs' in made_up.texts(figure)
  assert len(table) == 6 and (table['num_seeds'] == 0).all()


# Cost.


def test_costs_are_cpu_time_and_measured_in_turn() -> None:
  order = []

  def work(name: str, size: int) -> Callable[[], np.ndarray]:
    matrix = np.ones((size, size))

    def call() -> np.ndarray:
      order.append(name)
      return matrix @ matrix

    return call

  programs = {'small': work('small', 20), 'large': work('large', 300)}
  seconds = inference_cost.measure(programs, rounds=3, calls=2)
  assert {name: values.shape for name, values in seconds.items()} == {
      'small': (3,),
      'large': (3,),
  }
  assert np.median(seconds['large']) > np.median(seconds['small'])
  in_turn = ['small'] * 2 + ['large'] * 2
  assert order == ['small', 'large'] + 3 * in_turn


def test_every_model_was_timed() -> None:
  table = inference_cost.MEASURED.load()
  number = 0
  for preset in inference_cost.CALLS:
    for config in inference_cost.timed_configs(preset):
      assert inference_cost.find(preset, inference_cost.describe(config)) > 0
      number += 1
  assert number == len(table)
  assert len(set(table['date'])) == len(set(table['processor'])) == 1
  assert table['commit'].notna().all()
  assert pd.to_datetime(table['date']).notna().all()

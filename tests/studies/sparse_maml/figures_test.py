"""The figures and claims of sparse-MAML, on made-up results."""

import pathlib
import re
from typing import Any

import pytest

from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.studies.sparse_maml import figures
from tests.helpers import made_up
from tests.helpers import results

FIGURES = ('sm_accuracy', 'sm_where', 'sm_steps')
# As the claims say: accuracy by gates, and closed shares by layer.
_AS_CLAIMED = {
    'all': 0.60,
    'readout': 0.58,
    'body': 0.59,
    'binary': 0.65,
    'rectified': 0.66,
    'rates': 0.62,
    'hypernetwork': 0.85,
    'closed': 0.7,
    'closed_linear': 0.8,
    'closed_linear_1': 0.3,
    'closed_readout': 0.9,
    # Per unit of initial sparsity, and of MAML per 100 inner steps.
    'sparsity': 0.2,
    'steps': -0.2,
}


def _write(root: pathlib.Path, changes: Any = ()) -> data.Library:
  values = _AS_CLAIMED | dict(changes)

  def rule(fields: dict[str, Any], split: str, metric: str) -> float | None:
    del split
    gates = fields.get('model.gates')
    if metric.startswith('closed'):
      return values[metric] if gates else None
    if not gates:  # Figure 3B's.
      is_maml = fields['model.name'] == 'maml'
      return values['all' if is_maml else 'hypernetwork']
    accuracy = values[gates]
    if gates == 'binary':
      accuracy += values['sparsity'] * (fields['model.initial_sparsity'] - 0.5)
    if gates == 'all':
      steps = fields['model.inner.num_steps']
      accuracy += values['steps'] * (steps - 10) / 100
    return accuracy

  closed = [name for name in values if str(name).startswith('closed')]
  made_up.write_by_rule(root, 'sparse_maml', rule, more_metrics=closed)
  return results.library(root)


@pytest.fixture(scope='module', name='as_claimed')
def fixture_as_claimed(
    tmp_path_factory: pytest.TempPathFactory,
) -> data.Library:
  """Runs in which all claims hold."""
  return _write(tmp_path_factory.mktemp('as_claimed'))


@pytest.mark.parametrize(
    'claim_id, changes, verdict',
    [
        *((f'SM-{number}', {}, 'SUPPORTED') for number in range(1, 10)),
        ('SM-1', {'closed': 0.52}, 'CONTRADICTED'),
        ('SM-1', {'closed': 0.3}, 'SUPPORTED'),  # Fewer are a change, too.
        (
            'SM-1',
            {'closed_linear_1': 0.85, 'closed_linear': 0.86},
            'CONTRADICTED',
        ),
        ('SM-2', {'closed_linear': 0.2}, 'CONTRADICTED'),
        ('SM-3', {'readout': 0.7}, 'CONTRADICTED'),
        ('SM-4', {'sparsity': -0.2}, 'CONTRADICTED'),
        ('SM-5', {'steps': 0.2}, 'CONTRADICTED'),
        ('SM-6', {'closed': 0.05}, 'CONTRADICTED'),
        ('SM-6', {'rectified': 0.64}, 'SUPPORTED'),  # Within 0.02.
        ('SM-6', {'rectified': 0.60}, 'CONTRADICTED'),
        ('SM-7', {'all': 0.7}, 'CONTRADICTED'),
        ('SM-8', {'closed_readout': 0.2}, 'CONTRADICTED'),
        ('SM-9', {'hypernetwork': 0.62}, 'CONTRADICTED'),
    ],
)
def test_claims(
    tmp_path: pathlib.Path,
    as_claimed: data.Library,
    claim_id: str,
    changes: Any,
    verdict: str,
) -> None:
  library = _write(tmp_path, changes) if changes else as_claimed
  entry = results.judge(claim_id, library)
  assert entry['verdict'] == verdict, entry['note']
  assert entry['num_seeds'] == 3
  ours = "Ours, not the paper's: "
  sentence = results.claim(claim_id).sentence
  assert sentence.startswith((ours, 'Analogue on the hyperteacher'))


@pytest.mark.parametrize('name', FIGURES)
def test_figures_show_all_runs(as_claimed: data.Library, name: str) -> None:
  figure, table = registry.figures()[name].draw(as_claimed)
  texts = made_up.texts(figure)
  assert 'no run' not in texts and 'no finished run' not in texts
  assert len(table) == 32
  assert 'laptop scale' in texts


def test_bars_are_means(as_claimed: data.Library) -> None:
  figure, _ = figures.FIGURES['sm_accuracy'].draw(as_claimed)
  bars = [trace.y[0] for trace in made_up.traces(figure) if trace.type == 'bar']
  variants = [0.58, 0.60, 0.59, 0.65, 0.66, 0.62]
  assert bars == pytest.approx(2 * (variants + [0.85, 0.85]))
  # Beside them, with AdamW; without compositional support, MAML's alone.
  points = [
      trace for trace in made_up.traces(figure) if trace.type == 'scatter'
  ]
  diamonds = [trace for trace in points if trace.marker.symbol == 'diamond']
  beside = [trace.y[0] for trace in diamonds if trace.y[0] is not None]
  assert beside == pytest.approx([*variants, 0.60])


@pytest.mark.parametrize('name', FIGURES)
def test_without_runs_they_say_so(tmp_path: pathlib.Path, name: str) -> None:
  library = results.library(tmp_path)
  figure, table = registry.figures()[name].draw(library)
  assert re.search('no (finished )?run', made_up.texts(figure))
  assert len(table) == 32

"""Figures and claims of meta sequence-to-sequence learning, on made-up runs."""

from collections.abc import Callable, Sequence
import math
import pathlib
from typing import Any

import pandas as pd
import pytest

from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import registry
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.studies.meta_seq2seq import published as lake2019
from modular_hyperteacher.studies.meta_seq2seq.configs import scan_directions
from modular_hyperteacher.studies.meta_seq2seq.figures import cells
from modular_hyperteacher.studies.meta_seq2seq.figures import scan_attention
from tests.helpers import made_up
from tests.helpers import results

_FIGURES = list(registry.sections()['Meta sequence-to-sequence learning'])
_EXPERIMENTS = ('scan_me', 'scan_add_jump', 'scan_around_right', 'scan_length')


def as_published(run: sweeps.Run) -> float:
  found = lake2019.accuracy(run.config, 'ood')
  assert found is not None
  return found[0]


def write(
    root: pathlib.Path,
    rule: Callable[[sweeps.Run], float | None],
    experiments: Sequence[str] = _EXPERIMENTS,
    preset: str = 'laptop',
) -> data.Library:
  """Writes runs by a rule, run -> accuracy; None for no such run."""

  def measure(run: sweeps.Run) -> made_up.Summary | None:
    accuracy = rule(run)
    if accuracy is None:
      return None
    seeds = len(run.config['training']['seeds'])
    tilt = int(sweeps.hash_of(run.run_id), 16) % 5 + 1
    spread = [0.0005 * tilt * (i - (seeds - 1) / 2) for i in range(seeds)]
    values = [accuracy + d for d in spread]
    ood = dict.fromkeys(
        (
            'accuracy',
            'accuracy_withheld',
            'accuracy_shown',
            'accuracy_one_withheld',
            'accuracy_all_uses',
            'accuracy_length_1',
            'accuracy_length_8',
        ),
        values,
    )
    ood |= {
        'memory_attention_0_0': [0.25] * seeds,
        'memory_attention_0_1': [0.75] * seeds,
        'decoder_attention_1_0': [0.5] * seeds,
    }
    return {'ood': ood, 'test': {'accuracy': [1.0] * seeds}}

  for experiment in experiments:
    config = plugins.config_of(experiment).get_config(preset)
    made_up.write_experiment(root, config, measure)
  return results.library(root)


def evaluate_claim(library: data.Library, claim_id: str) -> verdicts.Entry:
  return results.judge(claim_id, library)


@pytest.mark.parametrize('number', range(1, 8))
def test_claims_pass_on_what_the_paper_says(
    tmp_path: pathlib.Path, number: int
) -> None:
  entry = evaluate_claim(write(tmp_path, as_published), f'MS-{number}')
  assert entry['verdict'] == 'SUPPORTED', entry
  assert entry['num_seeds'] == 3


@pytest.mark.parametrize('number', range(1, 8))
def test_claims_fail_if_all_networks_are_alike(
    tmp_path: pathlib.Path, number: int
) -> None:
  library = write(tmp_path, lambda run: 0.6)
  assert evaluate_claim(library, f'MS-{number}')['verdict'] == 'CONTRADICTED'


@pytest.mark.parametrize('number', range(1, 8))
def test_claims_are_not_run_without_runs(
    tmp_path: pathlib.Path, number: int
) -> None:
  library = data.Library(tmp_path, tmp_path)
  assert evaluate_claim(library, f'MS-{number}')['verdict'] == 'NOT RUN'


def test_published_scale_is_compared_with_published_values(
    tmp_path: pathlib.Path,
) -> None:
  library = write(tmp_path, as_published, ['scan_add_jump'], 'paper')
  assert (
      '4 of 4 published values agree' in evaluate_claim(library, 'MS-2')['note']
  )


@pytest.mark.parametrize(
    'experiment, network, meanings, num_extra, expected',
    [
        ('scan_me', cells.META, None, None, (1.0, 0.0)),
        ('scan_add_jump', cells.META, 'permuted', 0, (0.9995, 0.0008)),
        (
            'scan_add_jump',
            cells.NO_SUPPORT_LOSS,
            'permuted',
            0,
            (0.0543, 0.076),
        ),
        ('scan_add_jump', cells.NO_ATTENTION, 'extended', 20, (0.0929, 0.1307)),
        ('scan_add_jump', cells.STANDARD, 'fixed', 0, (0.0003, 0.0002)),
        ('scan_add_jump', cells.STANDARD, 'aligned', 20, (0.1226, 0.0833)),
        ('scan_around_right', cells.META, 'extended', 2, (0.9996, 0.0008)),
        ('scan_around_right', cells.META, 'extended', 20, (0.3633, 0.073)),
        ('scan_around_right', cells.STANDARD, 'fixed', 0, (0.0, math.nan)),
        ('scan_length', cells.META, 'extended', 20, (0.1664, 0.021)),
        ('scan_length', cells.STANDARD, 'fixed', 0, (0.0771, 0.019)),
    ],
)
def test_published_values_are_found(
    experiment: str,
    network: Any,
    meanings: str | None,
    num_extra: int | None,
    expected: tuple[float, float],
) -> None:
  trained = cells.Trained(experiment, network, meanings, num_extra)
  found = reference.published_accuracy(experiment, trained.cell, 'ood')
  assert found == pytest.approx(expected, nan_ok=True)
  assert reference.published_accuracy(experiment, trained.cell, 'test') is None


@pytest.mark.parametrize('name', _FIGURES)
def test_figures_without_runs_say_so(tmp_path: pathlib.Path, name: str) -> None:
  figure, table = registry.figures()[name].draw(
      data.Library(tmp_path, tmp_path)
  )
  assert 'no finished run' in made_up.texts(figure)
  assert isinstance(table, pd.DataFrame)


@pytest.mark.parametrize('name', _FIGURES)
def test_figures_of_runs_are_complete(
    tmp_path: pathlib.Path, name: str
) -> None:
  figure, table = registry.figures()[name].draw(write(tmp_path, as_published))
  assert 'no finished run' not in made_up.texts(figure)
  assert 'not the published scale' in made_up.texts(figure)
  assert len(table)


def test_tables_show_ours_beside_the_published(tmp_path: pathlib.Path) -> None:
  library = write(tmp_path, lambda run: as_published(run) / 2)
  _, table = registry.figures()['scan_table2'].draw(library)
  assert len(table) == 8
  for row in table.to_dict('records'):
    assert row['test_mean'] == pytest.approx(row['published_test'] / 2)
    assert row['training_mean'] == 1.0 and row['num_seeds'] == 3
  _, table = registry.figures()['scan_me'].draw(library)
  assert [math.isnan(value) for value in table['published_test']] == [
      True,
      True,
      True,
      False,
  ]


def test_attention_is_shown_by_the_symbols_of_the_example(
    tmp_path: pathlib.Path,
) -> None:
  words, actions, items = scan_attention.symbols('scan_add_jump')
  assert words == ['jump', 'twice', 'after', 'run', 'left', 'EOS']
  assert actions == ['I_TURN_LEFT', 'I_RUN', 'I_JUMP', 'I_JUMP', 'EOS']
  assert items == ['walk', 'look', 'run', 'jump']
  figure, table = registry.figures()['scan_attention'].draw(
      write(tmp_path, as_published, ['scan_add_jump'])
  )
  # Runs of other networks, which it does not show, are not missing.
  assert 'missing' not in made_up.texts(figure)
  shares = table.set_index(['attention', 'step', 'to'])['share']
  assert shares['memory attention', '1 jump', '2 look'] == 0.75
  assert shares['decoder attention', '2 I_RUN', '1 jump'] == 0.5


def test_accuracy_by_length(tmp_path: pathlib.Path) -> None:
  def meta_only(run: sweeps.Run) -> float | None:
    is_meta = run.config['model']['name'] == 'meta_seq2seq'
    return as_published(run) if is_meta else None

  figure, table = registry.figures()['scan_lengths'].draw(
      write(tmp_path, meta_only, ['scan_length'])
  )
  assert table['num_actions'].tolist() == [1, 8]
  assert table['accuracy_mean'].tolist() == pytest.approx([0.1664, 0.1664])
  missing = 'No finished run: standard seq2seq (Longer outputs).'
  assert missing in made_up.texts(figure)


@pytest.mark.parametrize(
    'preset, other', [('laptop', 'paper'), ('paper', 'laptop')]
)
def test_each_run_on_directions_takes_one_setting_from_the_other_scale(
    preset: str, other: str
) -> None:
  usual, *changed = reference.described_runs('scan_directions', preset)
  assert usual.run_id in {
      run.run_id
      for run in reference.described_runs('scan_around_right', preset)
  }
  (theirs,) = (
      dict(sweeps.flatten(run.config))
      for run in reference.described_runs('scan_around_right', other)
      if run.config['task']['num_extra'] == 20
  )
  ours = dict(sweeps.flatten(usual.config))
  found = []
  for run in changed:
    fields = dict(sweeps.flatten(run.config))
    found.append({path for path in ours if fields[path] != ours[path]})
    assert all(fields[path] == theirs[path] for path in found[-1])
  assert found == [set(paths) for paths in scan_directions.CHANGES.values()]

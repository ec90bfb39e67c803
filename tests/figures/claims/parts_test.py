"""Other runs of claims differ in one thing: steps, or the task."""

import pathlib
from typing import Any

import pytest

from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.claims import parts
from modular_hyperteacher.figures.extensions import over_training
from modular_hyperteacher.figures.extensions import variants
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import reference
from tests.helpers import made_up
from tests.helpers import results


def _longer(run: sweeps.Run, factor: int) -> dict[str, Any]:
  training = dict(run.config['training'])
  training['num_outer_steps'] *= factor
  return run.config | {'training': training}


_TRAINED_LONGER = [
    claim for claim in parts.CLAIMS if claim.experiment.endswith('_longer')
]


@pytest.mark.parametrize('claim', _TRAINED_LONGER, ids=lambda claim: claim.id)
def test_only_the_laptop_steps_differ(claim: verdicts.Claim) -> None:
  usual = claim.experiment.removesuffix('_longer')
  for preset, factor in (('smoke', 1), ('laptop', 4), ('paper', 1)):
    runs = reference.described_runs(usual, preset)
    known = {sweeps.condition(_longer(run, factor)) for run in runs}
    found = sweeps.described_conditions(claim.experiment, preset)
    assert found and found <= known


def test_only_the_laptop_teacher_of_3e_is_larger() -> None:
  """It has eight of everything, as many as Figure 3B's."""
  sizes = {'input_dim', 'teacher_hidden_dim', 'output_dim'}
  for preset in ('smoke', 'laptop', 'paper'):
    usual = {
        run.config['model']['name']: run.config
        for run in reference.described_runs('fig3e', preset)
        if run.config['task']['num_modules'] == 8
        and run.config['task']['max_active'] == 2
    }
    found = reference.described_runs('fig3e_teacher', preset)
    assert len(found) == 3
    for run in found:
      task, model = run.config['task'], run.config['model']
      before = usual[model['name']]
      assert model == before['model']
      assert run.config['training'] == before['training']
      changed = {
          field for field in task if task[field] != before['task'][field]
      }
      assert changed == (set() if preset == 'paper' else sizes)
      assert preset == 'paper' or {task[size] for size in sizes} == {8}


def test_only_the_modules_differ_in_a3_with_two_layers() -> None:
  for preset in ('smoke', 'laptop', 'paper'):
    known = [
        run.config
        for run in reference.described_runs('fig3e_teacher_longer', preset)
    ]
    found = reference.described_runs('fig_a3_two_layers', preset)
    num_modules = [run.config['task']['num_modules'] for run in found]
    assert sorted(num_modules) == [4, 4, 6, 6, 8, 8]
    for run in found:
      task = run.config['task'] | {'num_modules': 8}
      assert run.config | {'task': task} in known


def test_only_the_examples_of_anils_steps_differ() -> None:
  for preset, before in (('smoke', None), ('laptop', None), ('paper', 64)):
    usual = [run.config for run in reference.described_runs('fig4c', preset)]
    found = reference.described_runs('fig4c_anil', preset)
    assert len(found) == 3
    for run in found:
      model = run.config['model']
      if model['name'] == 'anil':
        assert model['inner']['batch_size'] == 64
        model = model | {'inner': model['inner'] | {'batch_size': before}}
      assert run.config | {'model': model} in usual


def test_only_k_of_pairs_is_smaller() -> None:
  for preset, before in (('smoke', 3), ('laptop', 3), ('paper', 2)):
    usual = [run.config for run in reference.described_runs('fig3b', preset)]
    found = reference.described_runs('fig3b_pairs', preset)
    assert len(found) == 8
    for run in found:
      task = dict(run.config['task'])
      assert task['max_active'] == 2
      task['max_active'] = before
      assert run.config | {'task': task} in usual


def test_each_claim_is_judged_by_its_longer_runs(
    tmp_path: pathlib.Path,
) -> None:
  """Hypernetworks, connected support and small students are better."""

  def rule(fields: dict[str, Any], _: str, metric: str) -> float:
    width = fields.get('model.hidden_dim', 0)
    accuracy = 0.9 if 'hyper' in fields['model.name'] else 0.5
    middle = fields['task.name'] == 'hyperteacher' and width == 32
    connected = fields['task.task_support'] in ('connected', 'chained_triples')
    value = accuracy + 0.05 * (middle + connected)
    if fields['model.name'] == 'modular_student':
      larger = width > 32 or fields['model.modules_per_teacher_module'] > 2
      value -= 0.1 * larger
    return 1 - value if metric == 'loss' else value

  # A3 reads curves, see `hyperteacher_test`.
  judged = [c for c in parts.CLAIMS if not c.id.startswith('A3')]
  for claim in judged:
    made_up.write_by_rule(
        tmp_path, claim.experiment, rule, more_metrics=['alignment']
    )
  figure, table = over_training.draw_parts(
      parts.CLAIMS, results.library(tmp_path)
  )
  assert [c.id for c in judged] == list(dict.fromkeys(table['claim']))
  for claim in judged:
    assert f'{claim.id}: SUPPORTED' in made_up.texts(figure)
  assert set(table['preset']) == {'laptop'}


@pytest.mark.parametrize(
    'claim_id, absent',
    [
        ('3E, ANIL', 'anil'),
        ('3E, ANIL', 'nonlinear_hypernetwork'),
        ('4C-1, ANIL', 'linear_hypernetwork'),
    ],
)
def test_a_part_of_the_runs_decides_nothing(
    tmp_path: pathlib.Path, claim_id: str, absent: str
) -> None:
  (claim,) = [claim for claim in parts.CLAIMS if claim.id == claim_id]
  for model in {*claim.models} - {absent}:
    made_up.write_by_rule(
        tmp_path,
        claim.experiment,
        lambda fields, *_: 0.5 + 0.1 * ('hyper' in fields['model.name']),
        name=model,
    )
  entry = verdicts.evaluate(claim, results.library(tmp_path))
  assert entry['verdict'] == 'NOT RUN', entry['note']


def test_without_runs_the_figure_says_so(tmp_path: pathlib.Path) -> None:
  figure, table = over_training.draw_parts(
      parts.CLAIMS, results.library(tmp_path)
  )
  assert table.empty and 'no finished run' in made_up.texts(figure)


def test_what_is_changed_for_few_modules(tmp_path: pathlib.Path) -> None:
  """A bar per model, split and condition of `configs/fig_a3.py:students`."""

  def rule(fields: dict[str, Any], split: str, _: str) -> float:
    return fields['task.num_modules'] / 20 + 0.1 * (split == 'test')

  made_up.write_by_rule(tmp_path, 'fig_a3_students', rule)
  figure, table = variants.FIGURES['fig_a3_students'].draw(
      results.library(tmp_path)
  )
  assert len(table) == 10 and table['ood_mean'].notna().all()
  assert set(table['ood_mean'].round(6)) == {0.2, 0.5}
  assert (table['test_mean'] - table['ood_mean']).round(6).eq(0.1).all()
  names = made_up.layout(figure).xaxis.ticktext
  assert names[1] == '4<br>40<br>25%'
  assert names[-1] == '10<br>40<br>90%'

"""Every config, at every scale: its runs can be built; a step can be taken."""

import json
import pathlib
import re
from typing import Any

import jax
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures import registry
from modular_hyperteacher.learning import programs
from tests.helpers import slow

_CONFIGS = plugins.experiments()


def _runs(name: str, preset: str) -> list[sweeps.Run]:
  return sweeps.expand(plugins.config_of(name).get_config(preset))


def _cases() -> list[tuple[str, str]]:
  return [(name, preset) for name in _CONFIGS for preset in presets.PRESETS]


_AT_SCALE = [case for case in _cases() if case[1] == 'paper']


@pytest.mark.parametrize('name, preset', slow.mark(_cases(), _AT_SCALE))
def test_all_runs_can_be_built(name: str, preset: str) -> None:
  """What is checked before anything is compiled lets every run pass."""
  runs = _runs(name, preset)
  assert runs
  assert len({run.run_id for run in runs}) == len(runs)
  for run in runs:
    assert (run.experiment, run.preset) == (name, preset)
    # A single task per step cannot be divided.
    num_devices = min(run.config['training']['meta_batch_size'], 2)
    built = build.build(run.config, num_devices)
    num_meta, num_fast = built.system.num_params
    assert num_meta > 0
    adapts = isinstance(built, bilevel.BilevelExperiment)
    # A network that is given the task has nothing to adapt.
    adapts &= not run.config['model']['name'].startswith('multitask_')
    assert (num_fast > 0) == adapts


@pytest.mark.parametrize('name', _CONFIGS)
def test_presets_keep_the_question(name: str) -> None:
  """A preset changes scale: its runs have a counterpart in the paper's."""
  described = {}
  for preset in presets.PRESETS:
    described[preset] = {
        (
            run.config['task']['name'],
            run.config['model']['name'],
            run.config['task'].get('task_support'),
        )
        for run in _runs(name, preset)
    }
  assert described['laptop'] <= described['paper']
  assert described['smoke'] <= described['paper']


@pytest.mark.parametrize('name', ['fig3b', 'fig4c', 'fig4e'])
def test_workstation_adds_models_of_equal_size_to_the_laptops_runs(
    name: str,
) -> None:
  laptop, workstation = (
      {run.run_id: run for run in _runs(name, preset)}
      for preset in ('laptop', presets.WORKSTATION)
  )
  assert set(laptop) < set(workstation)
  for run_id in set(workstation) - set(laptop):
    run = workstation[run_id]
    assert run.preset == 'laptop'  # So that figures show both.
    assert run.config['model']['name'] in models.MONOLITHIC
  described = sweeps.described_runs(name, 'laptop')
  assert {run.run_id for run in described} == set(workstation)


@pytest.mark.parametrize(
    'name, steps', [('fig3b', 30_000), ('fig3e', 8000), ('more_modules', 8000)]
)
def test_desktop_is_the_published_problem_in_smaller_steps(
    name: str, steps: int
) -> None:
  """Fields as published, but for those that docs/verdicts.md names."""
  published = [dict(sweeps.flatten(r.config)) for r in _runs(name, 'paper')]
  smaller = {'training.meta_batch_size', 'training.num_outer_steps'}
  for run in _runs(name, presets.DESKTOP):
    fields = dict(sweeps.flatten(run.config))
    assert fields['training.seeds'] == [*range(2020, 2025)]
    fewer = {'anil': 4000, 'maml': 8000}
    num_steps = fewer.get(fields['model.name'], steps)
    assert fields['training.num_outer_steps'] == num_steps
    free = {'training.seeds', *smaller}
    # What is evaluated where nothing is held out; training is the same.
    free |= {'task.repeat_empty', 'task.repeat_ood'}
    if fields['model.name'] != 'anil':
      free.add('model.hidden_dim')
    decisive = {
        path: value
        for path, value in fields.items()
        if path.startswith(('task.', 'model.', 'training.'))
        and path not in free
    }
    assert any(decisive.items() <= paper.items() for paper in published)


def test_at_desktop_experiments_share_runs() -> None:
  fig3b, fig3c, fig3e, more_modules = (
      set(sweeps.described_conditions(name, presets.DESKTOP))
      for name in ('fig3b', 'fig3c', 'fig3e', 'more_modules')
  )
  # Two hypernetworks, each on two supports, or with K = 2.
  assert len(fig3b & fig3c) == 4
  assert len(fig3e & more_modules) == 2
  # Connected and disconnected support take as many steps.
  steps = {
      run.config['training']['num_outer_steps']
      for run in _runs('fig3c', presets.DESKTOP)
  }
  assert steps == {8000, 30_000}


@pytest.mark.parametrize('name', ['fig3b', 'fig4c', 'fig4e'])
def test_an_unknown_preset_is_told_of_the_workstation(name: str) -> None:
  with pytest.raises(errors.UserError, match='paper, workstation'):
    _runs(name, 'typo')


def test_monolithic_models_take_few_tasks_at_once() -> None:
  for name, preset, number in (
      ('fig3b', presets.WORKSTATION, 12),
      ('fig3e', 'laptop', 13),
  ):
    runs = _runs(name, preset)
    assert len(runs) == number
    for run in runs:
      modular = run.config['model']['name'] in models.HYPERNETWORKS
      built = build.build(run.config, 2)
      assert built.execution.task_chunk_size == (32 if modular else 2)


@pytest.mark.parametrize('name', _CONFIGS)
def test_only_smoke_runs_are_not_optimised(name: str) -> None:
  for preset in presets.PRESETS:
    run, *_ = _runs(name, preset)
    assert run.config['execution']['optimise'] == (preset != 'smoke')


@pytest.mark.parametrize('name', _CONFIGS)
def test_unknown_preset_is_refused(name: str) -> None:
  with pytest.raises((ValueError, errors.UserError), match='smoke, laptop'):
    plugins.config_of(name).get_config('pocket')


@pytest.mark.parametrize('name', plugins.config_modules())
def test_opens_with_its_commands(name: str) -> None:
  config = plugins.config_of(name)
  assert config.flag() in config.module.__doc__
  (names,) = re.findall(
      r'python figures/make_all.py --only=(\S+)', config.module.__doc__
  )
  read = [registry.figures()[figure].experiments for figure in names.split(',')]
  variants = getattr(config.module, 'VARIANTS', {})
  for variant in ('', *(f'_{variant}' for variant in variants)):
    assert any(f'{name}{variant}' in experiments for experiments in read)


@pytest.mark.parametrize(
    'name', [n for n in _CONFIGS if plugins.config_of(n).variant]
)
def test_a_variant_is_chosen_after_a_colon(name: str) -> None:
  config = plugins.config_of(name)
  assert name == f'{config.name}_{config.variant}'
  assert config.variant in config.module.VARIANTS
  usual = config.module.get_config(config.variant)
  assert (usual.experiment, usual.preset) == (name, 'laptop')
  assert config.get_config().to_json() == usual.to_json()
  smoke = config.module.get_config(f'{config.variant}:smoke')
  assert (smoke.experiment, smoke.preset) == (name, 'smoke')
  for wrong in ('pocket', 'pocket:smoke', ''):
    with pytest.raises(errors.UserError, match=f'of .*{config.variant}'):
      config.module.get_config(wrong)
  file = f'configs/{config.name}.py' if config.is_paper else config.name
  assert sweeps.config_flag(name, 'smoke') == (
      f'--config={file}:{config.variant}:smoke'
  )


def test_other_words_are_no_experiments() -> None:
  for name in ('', '_', 'fig3', 'fig3b_', 'fig3b_typo', '_pairs', 'pairs'):
    assert plugins.find_config(name) is None
    assert sweeps.described_runs(name, 'laptop') == ()


def _kind(config: dict[str, Any]) -> str:
  """Returns task, model and solver."""
  task, model = config['task'], config['model']
  # A second generated layer changes the hyperteacher's program, too.
  depth = task.get('teacher_num_hidden')
  solver = model.get('inner', {}).get('solver')
  kind = (task['name'], depth, model['name'], solver)
  return '-'.join(str(part) for part in kind if part)


def _kinds() -> dict[str, sweeps.Run]:
  """Returns a run per kind, of the smallest preset.

  Those of curves_test take steps there. For Levenberg-Marquardt it compares a
  single one, whose loss is from before the parameters move.
  """
  curves = json.loads(
      pathlib.Path(__file__).with_name('curves.json').read_text()
  )
  known = {_kind(curve['config']) for curve in curves}
  runs = (run for name in _CONFIGS for run in _runs(name, 'smoke'))
  kinds = {_kind(run.config): run for run in runs}
  return {
      kind: run
      for kind, run in kinds.items()
      if kind not in known or kind.endswith('levenberg_marquardt')
  }


_KINDS = _kinds()


@pytest.mark.slow
@pytest.mark.parametrize('kind', _KINDS)
def test_every_kind_of_run_takes_a_step(kind: str) -> None:
  run = _KINDS[kind]
  # Meta seq2seq takes a single episode per step; here, one per device.
  devices = jax.device_count()
  sizes = {'meta_batch_size': devices, 'num_evaluation_tasks': devices}
  training = run.config['training'] | sizes
  built = build.build(run.config | {'training': training}, devices)
  compiled = programs.Programs(
      built.system,
      build.root_keys(built.training),
      build.draw_tasks(built),
  )
  state = compiled.init()
  before = programs.fetch(state.meta_params)
  state, metrics = compiled.train(state, 1)
  loss = programs.fetch(metrics)['loss']
  assert np.isfinite(loss).all()
  after = programs.fetch(state.meta_params)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(after))
  moved = jax.tree.map(lambda x, y: (x != y).any(), before, after)
  assert any(jax.tree.leaves(moved))
  jax.clear_caches()

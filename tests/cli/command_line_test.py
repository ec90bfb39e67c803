"""Names of configs, and fields that a config leaves at their defaults."""

import pathlib
from typing import Any

import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.cli import user_config
from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.experiments import sweeps
from tests.helpers import commands
from tests.helpers import slow

_FIELD = 'models.maml.outer.final_fraction'


def test_a_config_of_the_package_goes_by_its_name() -> None:
  found = pathlib.Path(user_config.locate('fig3b:paper'))
  assert found.name == 'fig3b.py:paper' and found.parent.name == 'configs'


@pytest.mark.parametrize(
    'old, new',
    [
        ('fig3e_longer', 'fig3e:longer'),
        ('fig3e_teacher_longer:smoke', 'fig3e:teacher_longer:smoke'),
        ('configs/fig_a3_two_layers.py', 'fig_a3:two_layers'),
        ('configs/fig4c_anil.py:paper', 'fig4c:anil:paper'),
        ('configs/scan_me.py', 'scan_me'),
        ('configs/in_context.py:workstation', 'in_context:workstation'),
    ],
)
def test_an_old_name_is_answered_by_the_new_one(old: str, new: str) -> None:
  with pytest.raises(errors.UserError) as refused:
    user_config.read(old)
  assert f"--config is '{old}'" in str(refused.value)
  assert str(refused.value).endswith(f' Write --config={new}.')
  assert sweeps.expand(user_config.read(new))


def test_runs_at_the_published_scale_are_of_the_same_variant() -> None:
  for name, experiment in (
      ('fig3e:teacher', 'fig3e_teacher'),
      ('fig3e:teacher:smoke', 'fig3e_teacher'),
      ('fig3e:smoke', 'fig3e'),
      ('fig3e', 'fig3e'),
  ):
    runs = user_config.published(user_config.locate(name))
    assert runs == list(sweeps.described_runs(experiment, 'paper'))


def test_a_config_that_ignores_its_preset_has_no_published_scale() -> None:
  name = 'examples/sines_study/sines_study/configs/sine_readouts.py'
  assert user_config.read(str(commands.ROOT / name))
  assert not user_config.published(str(commands.ROOT / name))
  run, _ = sweeps.expand(user_config.read(f'{commands.ROOT / name}:paper'))
  assert not sweeps.deviations(run, [])


def test_the_published_scale_needs_no_other(tmp_path: pathlib.Path) -> None:
  path = tmp_path / 'mine.py'
  path.write_text(
      'from modular_hyperteacher.configs import fig3b\n'
      'def get_config(preset="paper"):\n'
      '  assert preset == "paper"\n'
      '  return fig3b.get_config(preset)\n'
  )
  runs = user_config.published(str(path))
  assert runs == list(sweeps.described_runs('fig3b', 'paper'))


@pytest.mark.parametrize(
    'name', ['my/fig3b.py', 'no_such_figure', 'a b', 'campaigns']
)
def test_other_configs_go_by_their_path(name: str) -> None:
  assert user_config.locate(name) == name


@pytest.mark.parametrize(
    'text, default, value',
    [
        ('0.5', 1.0, 0.5),
        ('1', 0.5, 1.0),
        ('true', False, True),
        ('relu', 'tanh', 'relu'),
        ('None', None, None),
        ('8', None, 8),
    ],
)
def test_values_of_unlisted_fields(text: str, default: Any, value: Any) -> None:
  parsed = command_line._parse_value('f', text, default)
  assert parsed == value and type(parsed) is type(value)


@pytest.mark.parametrize('text, default', [('x', 1), ('1.5', 1), ('2', True)])
def test_values_of_the_wrong_type(text: str, default: Any) -> None:
  with pytest.raises(errors.UserError, match=f"config.f is '{text}'.*of type"):
    command_line._parse_value('f', text, default)


def test_a_field_at_its_default_is_the_same_run() -> None:
  config = fig3b.get_config('smoke')

  def run_ids(overrides: dict[str, Any]) -> list[str]:
    overridden = command_line.apply_overrides(config, overrides)
    return [run.run_id for run in sweeps.expand(overridden, overrides)]

  before = run_ids({})
  assert run_ids({_FIELD: 1.0}) == before
  changed = [a != b for a, b in zip(before, run_ids({_FIELD: 0.01}))]
  assert changed == ['maml' in run_id for run_id in before]


@pytest.mark.parametrize(
    'module',
    slow.mark(
        [
            'modular_hyperteacher.main',
            'launch.local',
            'launch.ray_cluster',
            'launch.slurm',
        ],
        ['launch.ray_cluster', 'launch.slurm'],
    ),
)
def test_help_lists_shared_flags_as_well(module: str) -> None:
  done = commands.python('-m', module, '--help')
  assert done.returncode == 0, done.stderr
  for flag in ('config', 'only', 'results', 'wandb'):
    assert f'\n  --{flag}:' in done.stdout
  assert 'config_default' not in done.stdout

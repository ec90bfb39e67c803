"""Whatever a config holds, it is a run, or one line says what is wrong."""

import contextlib
import json
import signal
from typing import Any
from unittest import mock

import hypothesis
from hypothesis import strategies as st
import ml_collections
import pytest

from modular_hyperteacher.cli import command_line
from modular_hyperteacher.cli import user_config
from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.configs import fig4b
from modular_hyperteacher.runs import runner
from modular_hyperteacher.studies.meta_seq2seq.configs import scan_me
from tests.fuzz import mutations
from tests.fuzz import settings

_MAX_S = 60  # Per case; SIGALRM then ends the test.
_ONE_DEVICE = mock.patch('jax.device_count', return_value=1)
_SOUND = [
    module.get_config('smoke').to_dict() for module in (fig3b, fig4b, scan_me)
]


def _attack(case: st.DataObject, tmp_path: Any) -> None:
  sound = case.draw(st.sampled_from(_SOUND))
  tree: Any = case.draw(mutations.damaged(sound))
  if isinstance(tree, dict):
    tree = {str(name): value for name, value in tree.items()}
    with contextlib.suppress(TypeError, ValueError, AttributeError):
      tree = ml_collections.ConfigDict(_with_tuples(tree))
  signal.alarm(_MAX_S)
  try:
    runs = user_config.expand(tree, {})
    (planned,) = runner.plan(runs[:1], tmp_path)
    with _ONE_DEVICE:
      _ = planned.experiment
  except Exception as error:  # As the command does.
    assert command_line.is_users(error), repr(error)
    assert str(error)
  finally:
    signal.alarm(0)
  assert not list(tmp_path.iterdir())


def _with_tuples(value: Any) -> Any:
  """Returns JSON in which lists are tuples, as in configs."""
  if isinstance(value, dict):
    return {name: _with_tuples(entry) for name, entry in value.items()}
  if isinstance(value, list):
    return tuple(map(_with_tuples, value))
  return value


@settings.FEW
@hypothesis.given(st.data())
def test_damaged_configs(tmp_path: Any, case: st.DataObject) -> None:
  _attack(case, tmp_path)


@pytest.mark.slow
@settings.MANY
@hypothesis.given(st.data())
def test_many_damaged_configs(tmp_path: Any, case: st.DataObject) -> None:
  _attack(case, tmp_path)


def test_sound_configs_are_runs(tmp_path: Any) -> None:
  """Or else the tests above would prove nothing."""
  for sound in _SOUND:
    tree = _with_tuples(json.loads(json.dumps(sound)))
    runs = user_config.expand(ml_collections.ConfigDict(tree), {})
    with _ONE_DEVICE:
      assert runner.plan(runs[:1], tmp_path)[0].experiment.training.seeds

"""What a run says when training ends in an error."""

import pytest

from modular_hyperteacher import command_line
from modular_hyperteacher import errors
from modular_hyperteacher import interrupt
from modular_hyperteacher import runner
from modular_hyperteacher import sweeps
from modular_hyperteacher.learning import trainer
from tests import small_sweep


def _execute(tmp_path):
  run = sweeps.expand(small_sweep.get_config())[0]
  (planned,) = runner.plan([run], tmp_path)
  with interrupt.Guard(()) as guard:
    runner.execute(planned, guard, lambda progress: None, lambda: None)


@pytest.mark.parametrize(
    'error, raised',
    [
        (ValueError('max() arg is empty'), RuntimeError),
        (errors.UserError('task.x is 1; it must be 2.'), errors.UserError),
    ],
)
def test_bugs_in_training_are_not_told_as_wrong_input(
    tmp_path, monkeypatch, error, raised
):
  def fail(self):
    raise error

  monkeypatch.setattr(trainer.Trainer, 'run', fail)
  with pytest.raises(raised) as caught:
    _execute(tmp_path)
  assert str(error) in str(caught.value)
  assert command_line.is_users(caught.value) == (raised is errors.UserError)

"""kill -9 at any moment of a run, twenty times: nothing is lost or changed."""

import itertools
import json
import pathlib
import random
import signal
import subprocess
import sys

import pytest

from tests.helpers import commands

_NUM_KILLS = 20
_PHASES = ('starting', 'training', 'evaluating', 'saving')
_WITHIN_S = (1.0, 0.4, 0.002, 0.02)  # of the beginning of each
_RUN = (
    '--config=tests/helpers/small_sweep.py',
    '--only=seeds=[0]',
    '--config.training.num_outer_steps=1000',
    '--config.training.evaluate_every=25',
    '--config.execution.log_every=25',
    '--host_devices=1',
)
# Importing takes seconds: one process imports, forks of it run the command,
# tell what they are doing in a shared byte, and are killed some time after they
# do what they are to be killed in. A line of stdin is [phase or none, seconds];
# the answer is [exit code, phase at the end]. With no seconds, the fork kills
# itself as the phase begins: on a busy machine, the kill would come too late
# for an evaluation.
_FORKS = """
import json, mmap, os, signal, sys, time
from modular_hyperteacher import main
from modular_hyperteacher.runs import trainer

phase = mmap.mmap(-1, 1)
at_once = None

def telling(number, method):
  def wrapped(self, *args):
    before, phase[0] = phase[0], number
    if number == at_once:
      os.kill(os.getpid(), signal.SIGKILL)
    try:
      return method(self, *args)
    finally:
      phase[0] = before
  return wrapped

loop = trainer.Trainer
for number, name in enumerate(('_take_steps', '_evaluate_if_due', 'save'), 1):
  setattr(loop, name, telling(number, getattr(loop, name)))

for line in sys.stdin:
  wanted, delay = json.loads(line)
  at_once = None if delay else wanted
  phase[0] = at = 0
  child = os.fork()
  if not child:
    os.dup2(2, 1)
    sys.argv = ['main'] + sys.argv[1:]
    main.run()
  status = None
  while status is None:
    done, code = os.waitpid(child, os.WNOHANG)
    if done:
      status, at = os.waitstatus_to_exitcode(code), phase[0]
    elif wanted is not None and phase[0] == wanted:
      time.sleep(delay)
      os.kill(child, signal.SIGKILL)
      at, wanted = phase[0], None
    else:
      time.sleep(0.0002)
  print(json.dumps([status, at]), flush=True)
"""


class _Killer:
  """Runs the command again and again, in one folder."""

  def __init__(self, results: pathlib.Path, cache: pathlib.Path) -> None:
    self._said = results.with_suffix('.log')
    self._process = subprocess.Popen(
        [sys.executable, '-c', _FORKS, *_RUN, f'--results={results}']
        + ['--config.execution.checkpoint_every_s=0.1'],
        cwd=commands.ROOT,
        env=commands.environment(
            JAX_COMPILATION_CACHE_DIR=str(cache),
            JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS='0.1',
        ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=open(self._said, 'w', encoding='utf-8'),  # pylint: disable=consider-using-with
        text=True,
    )

  def run(self, phase: int | None = None, delay: float = 0) -> tuple[int, int]:
    """Returns the exit code, and in which phase it was killed, if it was."""
    print(json.dumps([phase, delay]), file=self._process.stdin, flush=True)
    assert self._process.stdout is not None
    return tuple(json.loads(self._process.stdout.readline()))

  def close(self) -> str:
    """Returns what all runs said."""
    self._process.communicate()
    return self._said.read_text()


def _left(results: pathlib.Path) -> dict[str, bytes]:
  """Returns what must not depend on kills."""
  folder = commands.run_folder(results)
  names = ('metrics.csv', 'summary.json', 'checkpoints/1000.npz')
  return {name: (folder / name).read_bytes() for name in names}


@pytest.mark.slow
def test_killed_twenty_times_a_run_ends_the_same(
    tmp_path: pathlib.Path,
) -> None:
  unbroken = _Killer(tmp_path / 'unbroken', tmp_path / 'cache')
  assert unbroken.run()[0] == 0, unbroken.close()
  unbroken.close()
  expected = _left(tmp_path / 'unbroken')

  moments = random.Random(0)
  killer = _Killer(tmp_path / 'killed', tmp_path / 'cache')
  killed = []
  for number in range(_NUM_KILLS):
    aim = number % len(_PHASES)
    within_s = _WITHIN_S[aim] if number >= len(_PHASES) else 0
    code, phase = killer.run(aim, moments.uniform(0, within_s))
    assert code == -signal.SIGKILL, 'it ended before the last kill'
    killed.append(_PHASES[phase])
  assert killer.run()[0] == 0, killer.close()
  assert 'Traceback' not in killer.close()
  assert set(killed) == set(_PHASES), killed
  assert _left(tmp_path / 'killed') == expected
  folder = commands.run_folder(tmp_path / 'killed')
  assert not list(folder.glob('.*')), 'left by killed processes'
  # One that is killed between a checkpoint and its record lacks the last steps.
  sessions = json.loads((folder / 'provenance.json').read_text())['sessions']
  steps = [(s['first_step'], s['last_step']) for s in sessions]
  assert steps[-1][1] == 1000, steps
  assert all(first <= last for first, last in steps), steps
  assert all(b[0] >= a[1] for a, b in itertools.pairwise(steps)), steps

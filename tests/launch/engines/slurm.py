"""A SLURM of its own on this machine, for tests.

`python tests/launch/engines/slurm.py` starts one, waits for Enter, and stops
it. Needs root and Debian's packages slurm-wlm and munge. Everything is kept in
one folder and bound to the loopback interface; nothing under /etc is touched.
"""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import tempfile
import time

_PROGRAMS = ('munged', 'slurmctld', 'slurmd', 'sbatch', 'scontrol')
_CONFIG = """
ClusterName=loopback
SlurmctldHost=localhost
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=10

SchedulerParameters=sched_interval=1,batch_sched_delay=1
MinJobAge=30
MaxArraySize=3
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName=localhost CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES MaxTime=INFINITE State=UP
"""


def _free_ports() -> tuple[int, ...]:
  """Returns two ports of the loopback interface that nobody listens on."""
  with socket.socket() as first, socket.socket() as second:
    sockets = (first, second)
    for listener in sockets:
      listener.bind(('localhost', 0))
    return tuple(listener.getsockname()[1] for listener in sockets)


def missing() -> str | None:
  """Returns what keeps SLURM from being started here, if anything does."""
  absent = [name for name in _PROGRAMS if not _find(name)]
  if absent:
    return f'{", ".join(absent)} not installed: apt-get install slurm-wlm munge'
  if os.geteuid():
    return 'SLURM is started by root only'
  return None


def _find(name: str) -> str | None:
  return shutil.which(name, path=os.environ['PATH'] + ':/usr/sbin:/sbin')


@contextlib.contextmanager
def running(num_cpus: int = 2) -> Iterator[dict[str, str]]:
  """Runs a SLURM with one node; yields environment variables to reach it."""
  folder = pathlib.Path(tempfile.mkdtemp(prefix='slurm-'))
  # munge insists on folders that nobody else can write to, up to the root.
  folder.chmod(0o755)
  daemons = []
  try:
    (folder / 'state').mkdir()
    (folder / 'spool').mkdir()
    config = folder / 'slurm.conf'
    config.write_text(
        _CONFIG.format(folder=folder, ports=_free_ports(), cpus=num_cpus)
    )
    variables = {'SLURM_CONF': str(config)}
    daemons.append(_start_munge(folder))
    _wait_for(folder / 'munge.socket')
    for name in ('slurmctld', 'slurmd'):
      arguments = ['-N', 'localhost'] if name == 'slurmd' else []
      daemons.append(_start([name, '-D', *arguments], folder, variables))
    _wait_until_idle(variables)
    yield variables
  finally:
    for daemon in reversed(daemons):
      daemon.terminate()
    for daemon in daemons:
      try:
        daemon.wait(15)
      except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
    shutil.rmtree(folder, ignore_errors=True)


def _start_munge(folder: pathlib.Path) -> subprocess.Popen[bytes]:
  key = folder / 'munge.key'
  key.write_bytes(secrets.token_bytes(128))
  key.chmod(0o400)
  return _start(
      [
          'munged',
          '--foreground',
          '--force',
          f'--key-file={key}',
          f'--socket={folder}/munge.socket',
          f'--pid-file={folder}/munge.pid',
          f'--log-file={folder}/munge.log',
          f'--seed-file={folder}/munge.seed',
      ],
      folder,
      {},
  )


def _start(
    command: list[str], folder: pathlib.Path, variables: dict[str, str]
) -> subprocess.Popen[bytes]:
  program = _find(command[0])
  assert program is not None
  with open(folder / f'{command[0]}.out', 'w', encoding='utf-8') as log:
    return subprocess.Popen(
        [program, *command[1:]],
        env=os.environ | variables,
        stdout=log,
        stderr=subprocess.STDOUT,
    )


def _wait_for(path: pathlib.Path, timeout_s: float = 30) -> None:
  deadline = time.monotonic() + timeout_s
  while not path.exists():
    if time.monotonic() > deadline:
      raise TimeoutError(f'{path} did not appear')
    time.sleep(0.05)


def _wait_until_idle(variables: dict[str, str], timeout_s: float = 40) -> None:
  deadline = time.monotonic() + timeout_s
  state = ''
  while state != 'idle':
    if time.monotonic() > deadline:
      folder = pathlib.Path(variables['SLURM_CONF']).parent
      logs = [*folder.glob('*.log'), *folder.glob('*.out')]
      raise TimeoutError(
          '\n'.join(f'{log}:\n{log.read_text()[-2000:]}' for log in logs)
      )
    time.sleep(0.2)
    state = subprocess.run(
        ['sinfo', '-h', '-o', '%t'],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()


if __name__ == '__main__':
  with running() as found:
    print(' '.join(f'{name}={value}' for name, value in found.items()))
    input('running; press Enter to stop it')

"""Copies metrics to Weights & Biases, if the user asks for it.

The results folder remains the record; rows of metrics.csv are copied as they
are logged. `--wandb=offline` writes them into the run's folder, for `wandb
sync`; `--wandb=online` uploads them.
"""

import math
from typing import Any, cast

from absl import flags

from modular_hyperteacher import errors
from modular_hyperteacher.devices import multihost
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.runs import trainer

OFF = 'off'
MODES = (OFF, 'offline', 'online')
_PROJECT = 'modular_hyperteacher'
_STEP = 'outer_step'


def define_flag() -> None:
  """Defines --wandb."""
  flags.DEFINE_enum(
      'wandb',
      OFF,
      MODES,
      'Copy metrics for Weights & Biases: keep them in the run folder'
      ' (offline) or send them (online).',
  )


def mode() -> str:
  """Returns the value of --wandb; raises UserError if it is not installed."""
  # The flag has a default.
  chosen = cast(str, flags.FLAGS['wandb'].value)
  if chosen != OFF:
    _import_wandb(chosen)
  return chosen


class Tracker:
  """Copies one run's metrics; use as a context manager.

  A resumed run keeps its id. Of several processes, only the first copies.
  """

  def __init__(
      self, run: sweeps.Run, folder: run_folder.RunFolder, chosen: str
  ) -> None:
    self._run = run
    self._folder = folder
    self._mode = chosen if multihost.is_primary() else OFF
    self._seeds = run.config['training']['seeds']
    self._tracked: Any = None

  def __enter__(self) -> 'Tracker':
    if self._mode == OFF:
      return self
    wandb = _import_wandb(self._mode)
    self._folder.create()
    try:
      self._tracked = wandb.init(
          project=_PROJECT,
          group=f'{self._run.experiment}-{self._run.preset}',
          name=self._run.run_id,
          id=sweeps.hash_of(self._run.run_id),
          resume='allow',
          mode=self._mode,
          dir=str(self._folder.path),
          config=self._run.config,
          # Metrics only: no console output, code or commits leave the machine.
          settings=wandb.Settings(
              silent=True, console='off', disable_git=True, save_code=False
          ),
      )
    except Exception as error:  # It raises errors of many types.
      advice = ', or use --wandb=offline' if self._mode == 'online' else ''
      raise errors.MachineError(
          f"--wandb is '{self._mode}', but Weights & Biases fails"
          f' ({errors.describe(error)}). Try again{advice}.'
      ) from error
    # wandb's own step cannot decrease, but a run that was killed goes back.
    self._tracked.define_metric(_STEP, hidden=True)
    self._tracked.define_metric('*', step_metric=_STEP)
    return self

  def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
    if self._tracked is not None:
      self._tracked.finish(exit_code=0 if kind is None else 1)

  def update(self, progress: trainer.Progress) -> None:
    """Copies the latest metrics of every seed, except for missing values."""
    if self._tracked is None or not progress.metrics:
      return
    self._tracked.log(
        {_STEP: progress.step}
        | {
            f'{name}/{seed}': float(value)
            for name, values in progress.metrics.items()
            for seed, value in zip(self._seeds, values)
            if not math.isnan(value)
        }
    )


def _import_wandb(chosen: str) -> Any:
  try:
    # pylint: disable-next=import-outside-toplevel
    import wandb  # pyright: ignore[reportMissingImports]
  except ImportError as error:
    raise errors.UserError(
        f"--wandb is '{chosen}', but Weights & Biases is not installed; try pip"
        " install -e '.[wandb]', or --wandb=off."
    ) from error
  return wandb

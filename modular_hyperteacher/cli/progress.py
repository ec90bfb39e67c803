"""The progress bar of one run: steps per second, time left, current losses."""

import sys

import tqdm

from modular_hyperteacher.cli import formats
from modular_hyperteacher.devices import multihost
from modular_hyperteacher.runs import runner
from modular_hyperteacher.runs import trainer


class Bar:
  """A progress bar on stderr; use as a context manager."""

  def __init__(self, run: runner.PlannedRun, index: int, num_runs: int) -> None:
    config = run.spec.config
    interactive = sys.stderr.isatty()
    support = config['task'].get('task_support', '')
    self._bar = tqdm.tqdm(
        total=config['training']['num_outer_steps'],
        desc=f'[{index + 1}/{num_runs}] {run.spec.model} {support}'.rstrip(),
        unit='step',
        postfix='compiling',  # It stands there until the first step is done.
        dynamic_ncols=interactive,
        # A log file needs few lines.
        mininterval=0.5 if interactive else 20,
        maxinterval=30,
        disable=not multihost.is_primary(),
        file=sys.stderr,
    )
    self._losses: dict[str, str] = {}

  def __enter__(self) -> 'Bar':
    return self

  def __exit__(self, *_: object) -> None:
    self._bar.close()

  def update(self, progress: trainer.Progress) -> None:
    """Shows the step and the latest losses, averaged over seeds."""
    for name, values in progress.metrics.items():
      split, _, metric = name.partition('/')
      if metric == 'loss' and split in ('train', 'valid', 'ood'):
        self._losses[split] = formats.number(values.mean())
    self._bar.set_postfix(self._losses, refresh=False)
    # Steps of earlier sessions do not count for the speed.
    if self._bar.n == 0 and progress.step > 1:
      self._bar.initial = self._bar.n = self._bar.last_print_n = progress.step
    self._bar.update(progress.step - self._bar.n)

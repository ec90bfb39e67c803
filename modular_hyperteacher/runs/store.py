"""Which finished runs an experiment has, in whatever folder they are.

If two experiments describe the same run, one training serves both. Run ids
depend on the seeds, and bundles pool seeds that were trained at different
times. So runs are told apart by their keys, condition and seed.
"""

from collections.abc import Sequence
import dataclasses
import functools
import pathlib
from typing import Any, TypeAlias, TypeVar

from modular_hyperteacher.experiments import sweeps

Key: TypeAlias = tuple[str, int]  # A condition and a seed.


@dataclasses.dataclass(frozen=True, eq=False)
class Finished:
  """A finished run.

  Attributes:
    folder: the folder that it was read from.
    experiment: the experiment whose folder that is.
    preset: the preset whose folder that is.
    run_id: the run's id.
    config: nested dict with the blocks task, model, training and execution.
  """

  folder: pathlib.Path
  experiment: str
  preset: str
  run_id: str
  config: dict[str, Any]

  @functools.cached_property
  def condition(self) -> str:
    """The hash of the fields that affect results, except the seeds."""
    return sweeps.condition(self.config)

  @functools.cached_property
  def keys(self) -> frozenset[Key]:
    """The condition with each seed."""
    seeds = self.config['training']['seeds']
    return frozenset((self.condition, seed) for seed in seeds)


_Run = TypeVar('_Run', bound=Finished)


def own(runs: Sequence[_Run], experiment: str, preset: str) -> list[_Run]:
  """Returns the runs in the folder of an experiment and preset."""
  where = experiment, preset
  return [run for run in runs if (run.experiment, run.preset) == where]


def find(runs: Sequence[_Run], experiment: str, preset: str) -> list[_Run]:
  """Returns the runs of an experiment and preset, first those in its folder.

  Runs in other folders follow if its config describes them and they have seeds
  that no run before them has.

  Args:
    runs: all finished runs, the preferred ones first.
    experiment: such as 'fig3e'.
    preset: such as 'laptop'.

  Raises:
    UserError: if the experiment has no such preset.
  """
  found = own(runs, experiment, preset)
  keys = {key for run in found for key in run.keys}
  described = sweeps.described_conditions(experiment, preset)
  for run in runs:
    if run.condition in described and not run.keys <= keys:
      keys |= run.keys
      found.append(run)
  return found

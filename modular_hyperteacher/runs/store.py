"""Which finished runs an experiment has, in whatever folder they are.

If two experiments describe the same run, one training serves both. Run ids
depend on all seeds of a run, so they differ where seeds were added or pooled:
what counts is the condition and the seed.
"""

from collections.abc import Sequence
import dataclasses
import functools
import pathlib
from typing import Any, TypeAlias, TypeVar

from modular_hyperteacher.experiments import sweeps

Key: TypeAlias = tuple[str, int]  # The hash of a condition, and a seed.


@dataclasses.dataclass(frozen=True, eq=False)
class Finished:
  """A finished run in the folder of an experiment and a preset."""

  folder: pathlib.Path
  run_id: str
  config: dict[str, Any]

  @functools.cached_property
  def where(self) -> tuple[str, str]:
    """The experiment and the preset."""
    return self.folder.parent.name, self.folder.name

  @functools.cached_property
  def condition(self) -> str:
    """The hash of the fields that affect results, except the seeds."""
    return sweeps.condition(self.config)

  @property
  def keys(self) -> list[Key]:
    """The condition with each of the seeds."""
    return [(self.condition, s) for s in self.config['training']['seeds']]

  def is_described(self, experiment: str, preset: str) -> bool:
    """Returns whether a config describes the run, whatever its seeds."""
    return self.condition in sweeps.described_conditions(experiment, preset)


_Run = TypeVar('_Run', bound=Finished)


def find(
    runs: Sequence[_Run], experiment: str, preset: str, borrow: bool = True
) -> dict[Key, _Run]:
  """Returns the runs of an experiment and preset by condition and seed.

  `runs` are all finished runs, the preferred ones first; `borrow` says whether
  runs that the config describes count in other folders, too. UserError if the
  experiment has no such preset.
  """
  where = experiment, preset
  ours = [run for run in runs if run.where == where]
  if borrow:
    ours += [run for run in runs if run.is_described(*where)]
  runs_by_key: dict[Key, _Run] = {}
  for run in ours:
    for key in run.keys:
      runs_by_key.setdefault(key, run)
  return runs_by_key

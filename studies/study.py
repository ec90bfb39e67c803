"""The contract of a study: what it adds to the package."""

from collections.abc import Mapping
import dataclasses
import importlib
import pathlib
from typing import Any, NamedTuple


class System(NamedTuple):
  """A way of learning other than the two loops of the paper."""

  name: str  # One word.
  # Has `blocks(task, model)` and `build(config, training, execution,
  # num_devices)`, as `experiments.bilevel` does; `MODELS`; with tasks of its
  # own, `TASKS`; perhaps `make_infer(config, key)`, which returns the task and
  # `infer(task_params, task, key)`, whose time is measured.
  module: str
  models: tuple[str, ...]  # That only this system builds.
  tasks: tuple[str, ...] = ()  # That only this system has.
  world: str = ''  # 'module:class' that draws such tasks as NumPy arrays.


@dataclasses.dataclass(frozen=True)
class Study:
  """A question beyond the paper, and all that answers it.

  Everything but names and texts is given as 'package.module:attribute' and is
  imported when it is needed: training a model loads no plots.
  """

  # Its folder has a README.md, the configs in `configs/`, and bundled results
  # in `data/`.
  package: str
  title: str  # Heading of its chapter of the report.
  paper: str  # What it reproduces: authors, year, identifier; or 'ours'.
  configs: tuple[str, ...] = ()  # Their names.
  # Name in configs -> a function that returns a `TaskDistribution`, or a
  # `components.TaskEntry`.
  tasks: Mapping[str, str] = dataclasses.field(default_factory=dict)
  # Name in configs -> a function that returns a `MetaModel`.
  models: Mapping[str, str] = dataclasses.field(default_factory=dict)
  # `model.outer.gradient` in configs -> a subclass of `outer_loop.OuterConfig`,
  # which estimates the outer gradient.
  gradients: Mapping[str, str] = dataclasses.field(default_factory=dict)
  systems: tuple[System, ...] = ()  # Further ways of learning.
  figures: str = ''  # Name -> `registry.Figure`, in the order of the chapter.
  claims: str = ''  # Tuple of `verdicts.Claim`.
  # Tuple of `learners.Learner`, rows of the comparison of all learners.
  learners: str = ''
  # Preset -> experiment -> fields of those of its runs whose inference is
  # timed, for that comparison.
  timed: Mapping[str, Mapping[str, Mapping[str, Any]]] = dataclasses.field(
      default_factory=dict
  )
  # Module with the paper's numbers: `table()`, which has a column `id`, and
  # `accuracy(config, split)`.
  published: str = ''
  # CSV file in the study's folder: where paper and released code differ.
  discrepancies: str = ''
  # World -> `draw(seed)` of one of its tasks.
  pictures: Mapping[str, str] = dataclasses.field(default_factory=dict)

  @property
  def folder(self) -> pathlib.Path:
    """The study's folder."""
    return pathlib.Path(importlib.import_module(self.package).__path__[0])

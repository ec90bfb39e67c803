"""Files of tasks for other frameworks, and files of predictions.

A file of tasks holds the arrays of `Tasks` that a learner may see, and `spec`,
JSON in UTF-8 bytes, which identifies the tasks. A file of predictions holds
`predictions` and a copy of `spec`. To score it, the tasks are drawn again, so
neither file holds the targets of the query set.
"""

from collections.abc import Mapping
import json
import os
import pathlib
import re
from typing import Any, NamedTuple

import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher import untrusted
from modular_hyperteacher.experiments import draws
from modular_hyperteacher.untrusted import npz
from modular_hyperteacher.worlds import catalogue
from modular_hyperteacher.worlds import world as worlds

# The arrays that a learner may see.
VISIBLE = (
    *('support_inputs', 'support_targets', 'support_mask'),
    *('query_inputs', 'query_mask'),
)
_SPEC_TYPES = {
    'world': str,
    'preset': str,
    'fields': dict,
    'seed': int,
    'split': str,
    'num_tasks': int,
    'tasks_seed': int,
}
_MAX_SPEC = 2**16  # In bytes.
_NUM_DIGESTED = 4  # Tasks. Another stream changes all of them.
_SPEC = npz.Expected((None,), 'u', _MAX_SPEC)
# The fields that determine which combinations are held out.
_SUPPORT = ('task_support', 'split', 'meanings')


class Scored(NamedTuple):
  """A scored file of predictions."""

  learner: str  # The name of its file, up to the first dot.
  world: worlds.World
  split: str
  num_tasks: int
  metrics: dict[str, float]  # Metric -> mean over tasks.

  def row(self) -> dict[str, Any]:
    """Returns a row of the report's table of predictions."""
    return {
        'model': self.learner,
        'world': self.world.name,
        'task_support': support(self.world.fields),
        'split': self.split,
        **self.metrics,
        'num_tasks': self.num_tasks,
        'num_seeds': 1,
        'preset': self.world.preset,
    }


def support(fields: Mapping[str, Any]) -> str:
  """Returns the support of a world with these fields, such as 'random'."""
  return ', '.join(fields[name] for name in _SUPPORT if name in fields)


def export(
    path: str | os.PathLike[str],
    world: worlds.World,
    split: str,
    num_tasks: int | None = None,
    tasks_seed: int = 0,
) -> worlds.Tasks:
  """Writes tasks to a compressed .npz file, and returns them.

  Raises:
    UserError: if tasks cannot be drawn, or the file cannot be written.
  """
  path = files.locate(path, 'the file of tasks')
  tasks = world.sample(split, num_tasks, tasks_seed)
  spec = _make_spec(world, split, tasks, len(tasks.latents), tasks_seed)
  _write(path, {name: getattr(tasks, name) for name in VISIBLE}, spec)
  return tasks


def write_predictions(
    path: str | os.PathLike[str],
    predictions: Any,
    world: worlds.World,
    split: str,
    tasks_seed: int = 0,
) -> None:
  """Writes predictions of tasks that `World.sample` drew.

  Predictions are as `World.score` takes them, one per task. `tasks_seed` is the
  argument `seed` of `sample`.

  Raises:
    UserError: if predictions have another shape or kind, or the file cannot be
      written.
  """
  path = files.locate(path, 'the file of predictions')
  predictions = np.asarray(predictions)
  number = len(np.atleast_1d(predictions))
  whole = split in world.fixed_sizes
  num_drawn = number if whole else min(number, _NUM_DIGESTED)
  seed = worlds.check_seed('tasks_seed', tasks_seed)
  tasks = world.sample(split, num_drawn, seed)
  world.check_predictions(predictions, tasks, number)
  spec = _make_spec(world, split, tasks, number, tasks_seed)
  _write(path, {'predictions': predictions}, spec)


def _digest(world: worlds.World, tasks: worlds.Tasks) -> draws.Digest:
  """Returns the digest of a world and of what its first tasks show."""
  shown = {name: getattr(tasks, name)[:_NUM_DIGESTED] for name in VISIBLE}
  return draws.digest({'world': world.params, **shown})


def _make_spec(
    world: worlds.World,
    split: str,
    tasks: worlds.Tasks,
    num_tasks: int,
    tasks_seed: int,
) -> dict[str, Any]:
  """Returns what identifies tasks, of which the first are given."""
  return {
      'world': world.name,
      'preset': world.preset,
      'fields': dict(world.fields),
      'seed': world.seed,
      'split': split,
      'num_tasks': num_tasks,
      'tasks_seed': worlds.check_seed('tasks_seed', tasks_seed),
      **world.description,
      'drawn': _digest(world, tasks),
  }


def score(path: str | os.PathLike[str]) -> Scored:
  """Returns the score of a file of predictions, which may be untrusted.

  Raises:
    UserError: if the file is not one of predictions for a world that a config
      describes; says why.
  """
  path = files.locate(path, 'the file of predictions')
  learner = path.name.partition('.')[0]
  if not re.fullmatch(r'[\w-]{1,40}', learner):
    raise errors.UserError(
        f"{path}: the learner's name, up to the first dot, must be of 1 to 40"
        ' letters, digits, _ and -.'
    )
  spec = _read_spec(path)
  split, num_tasks = spec['split'], spec['num_tasks']
  asked = split, num_tasks, spec['tasks_seed']
  try:
    world = catalogue.make_described(
        spec['world'], spec['preset'], spec['fields'], spec['seed']
    )
    wanted = world.prediction(world.shapes(*asked))
  except errors.UserError as error:
    raise errors.UserError(f'{path}: {error}') from error
  read = npz.read(path, {'predictions': wanted})
  tasks = world.sample(*asked)
  if told := draws.compare(spec.get('drawn'), _digest(world, tasks)):
    raise errors.UserError(
        f'{path} cannot be scored, as {told}. Export the tasks again, and'
        ' predict these.'
    )
  metrics = world.score(read['predictions'], tasks)
  return Scored(learner, world, split, num_tasks, metrics)


def _read_spec(path: pathlib.Path) -> dict[str, Any]:
  content = npz.read(path, {'spec': _SPEC})['spec'].tobytes()
  try:
    spec = json.loads(content)
  except (ValueError, RecursionError) as error:
    raise errors.UserError(f"{path}, array 'spec' is not JSON.") from error
  for field, kind in _SPEC_TYPES.items():
    value = spec.get(field) if isinstance(spec, dict) else None
    if type(value) is not kind:
      raise errors.UserError(
          f"{path}, array 'spec' has no {field} of type {kind.__name__}; copy"
          ' it from the file of tasks.'
      )
  if 'drawn' in spec:  # Earlier versions did not write it.
    untrusted.check(spec['drawn'], draws.Digest, f"{path}, array 'spec': drawn")
  return spec


def _write(
    path: pathlib.Path,
    arrays: Mapping[str, np.ndarray],
    spec: Mapping[str, Any],
) -> None:
  content = np.frombuffer(json.dumps(spec).encode(), np.uint8)
  packed = files.encode_arrays({**arrays, 'spec': content}, compress=True)
  try:
    if path.exists() and not path.is_file():  # A pipe or a device.
      path.write_bytes(packed)
    else:
      files.write_atomically(path.resolve(), packed)
  except OSError as error:  # StorageError is one.
    raise errors.UserError(
        f'cannot write to {path} ({error.strerror}).'
    ) from error

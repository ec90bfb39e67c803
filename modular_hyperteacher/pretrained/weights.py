"""Reads and writes trained parameters: in checkpoints and in small files.

A folder of small files holds `<run id>.npz` for each run: meta-parameters of
some of its seeds, leaves [R, ...] named by their path in the tree. These are
compressed NumPy arrays, so loading them cannot execute code. `index.json` lists
the seeds, the kind, a hash of the arrays and digests of the tasks of every run.
"""

from collections.abc import Collection, Mapping, Sequence
import math
import pathlib
from typing import Any

import jax
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher import untrusted
from modular_hyperteacher.devices import jax_settings
from modular_hyperteacher.experiments import draws
from modular_hyperteacher.experiments import settings
from modular_hyperteacher.runs import checkpoints
from modular_hyperteacher.runs import records
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.runs import trainer
from modular_hyperteacher.untrusted import npz

_INDEX = 'index.json'


def restore(
    folder: run_folder.RunFolder, experiment: settings.Experiment, kind: str
) -> Any:
  """Returns meta-parameters [R, ...] from a checkpoint, of a `records.KINDS`.

  Raises:
    UserError: if there is no checkpoint, or it cannot be read.
  """
  state = jax.tree.map(
      lambda x: np.zeros(x.shape, x.dtype), state_shapes(experiment)
  )
  loss = np.zeros(len(experiment.training.seeds), np.float32)
  saved = checkpoints.Checkpoints(folder.checkpoints).restore(
      trainer.Saved(state, state.meta_params, loss), newest_only=True
  )
  if saved is None:
    raise errors.UserError(
        f'{folder.path} has no checkpoint, and so no parameters; train the run'
        ' again.'
    )
  return saved.state.meta_params if kind == 'last' else saved.best_params


def write(
    folder: pathlib.Path,
    run_id: str,
    *,
    kind: str,
    seeds: Sequence[int],
    meta_params: Any,
    drawn: Mapping[str, draws.Digest] | None = None,
) -> None:
  """Adds a run's parameters, leaves [R, ...], with digests of its tasks.

  They are rounded to half precision, by at most one part in 2,048 (or 3e-8, if
  that is more), to keep clones of the repository small.

  Raises:
    UserError: if a parameter is not finite at that precision.
  """
  arrays = {name: np.asarray(x, np.float16) for name, x in _named(meta_params)}
  for name, array in arrays.items():
    if not np.isfinite(array).all():
      raise errors.UserError(
          f"{run_id}: parameter '{name}' is not finite in half precision (at"
          ' most 65504); the run cannot be bundled.'
      )
  folder.mkdir(parents=True, exist_ok=True)
  content = files.encode_arrays(arrays, compress=True)
  files.write_atomically(_path(folder, run_id), content)
  digest = files.hash_arrays(sorted(arrays.items()))
  entry = {'kind': kind, 'seeds': list(seeds), 'sha256': digest}
  entry |= {'drawn': dict(drawn)} if drawn else {}
  index = read_index(folder) | {run_id: entry}
  run_folder.RunFolder(folder).write(_INDEX, index)


def copy(
    source: pathlib.Path, target: pathlib.Path, run_ids: Collection[str]
) -> None:
  """Adds the parameters of runs to another folder; ignores runs without any."""
  index = read_index(source)
  entries = {run_id: index[run_id] for run_id in run_ids if run_id in index}
  if not entries:
    return
  target.mkdir(parents=True, exist_ok=True)
  for run_id in entries:
    path = _path(source, run_id)
    content = untrusted.read_bytes(path)
    if content is None:
      raise errors.UserError(f'{path} is missing.')
    files.write_atomically(_path(target, run_id), content)
  run_folder.RunFolder(target).write(_INDEX, read_index(target) | entries)


def remove(folder: pathlib.Path, run_ids: Collection[str]) -> list[str]:
  """Removes the parameters of runs; returns the ids of those that had some."""
  index = read_index(folder)
  gone = [run_id for run_id in index if run_id in run_ids]
  kept = {r: entry for r, entry in index.items() if r not in gone}
  if gone:
    run_folder.RunFolder(folder).write(_INDEX, kept)
  for run_id in gone:
    path = _path(folder, run_id)
    if path.is_dir():
      raise errors.UserError(f'{path} is a folder; move it away.')
    path.unlink(missing_ok=True)
  return gone


def read_index(folder: pathlib.Path) -> dict[str, Any]:
  """Returns run id -> `records.Parameters`; UserError if it is damaged."""
  return run_folder.RunFolder(folder).read(_INDEX, records.Index) or {}


def _path(folder: pathlib.Path, run_id: str) -> pathlib.Path:
  """Returns the path of a run's arrays, after checks that it is inside."""
  untrusted.inside(folder, run_id, 'a run id')
  return untrusted.inside(folder, f'{run_id}.npz', 'a run id')


def read(folder: pathlib.Path, run_id: str, like: Any) -> Any:
  """Returns a run's parameters from a folder that `write` wrote to.

  `like` is the expected tree, of arrays or of their shapes.

  Raises:
    UserError: if the file cannot be read or does not match its index.
  """
  path = _path(folder, run_id)
  expected = {
      name: npz.Expected(leaf.shape, 'f', 4 * math.prod(leaf.shape))
      for name, leaf in _named(like)
  }
  arrays = npz.read(path, expected)
  entry = read_index(folder).get(run_id)
  digest = files.hash_arrays(sorted(arrays.items()))
  if entry is None or digest != entry['sha256']:
    raise errors.UserError(
        f'{path} does not hold the parameters of its run; fetch the file again,'
        ' or train the run.'
    )
  leaves = [arrays[name].astype(np.float32) for name in expected]
  return jax.tree.unflatten(jax.tree.structure(like), leaves)


@jax_settings.fixed()
def state_shapes(experiment: settings.Experiment) -> Any:
  """Returns an `outer_loop.TrainState` of shapes [R, ...]."""
  keys = jax.random.split(jax.random.key(0), len(experiment.training.seeds))
  return jax.eval_shape(jax.vmap(experiment.system.init), keys)


def _named(tree: Any) -> list[tuple[str, Any]]:
  """Returns (name, leaf) in the order of the tree's leaves."""
  return [
      (jax.tree_util.keystr(path, simple=True, separator='/'), leaf)
      for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
  ]

"""Trained parameters of finished runs: out of checkpoints, and as small files.

A folder of them holds, per run, `<run id>.npz` with the meta-parameters of some
of its seeds, leaves [R, ...] of float32, under the names of their places in the
tree; NumPy's compressed arrays, so nothing that is loaded can execute. In
`index.json` stand, run by run, the seeds, the kind, and a hash that tells
whether the arrays are still those that were written.
"""

import hashlib
import io
import pathlib
from typing import Any, Collection, Sequence
import zipfile

import jax
import numpy as np

from modular_hyperteacher import checkpoints
from modular_hyperteacher import errors
from modular_hyperteacher import experiment_base as base
from modular_hyperteacher import results
from modular_hyperteacher.learning import trainer

# Whose parameters a checkpoint holds: the last step's, and those of the
# evaluation with the lowest validation loss.
KINDS = ('last', 'best_validation')
_INDEX = 'index.json'


def shapes(experiment: base.Experiment) -> Any:
  """Returns the meta-parameters of all seeds as shapes; computes nothing."""
  return _state_shapes(experiment).meta_params


def restore(
    folder: results.RunFolder, experiment: base.Experiment, kind: str
) -> Any:
  """Returns the meta-parameters [R, ...] that a run's checkpoint holds.

  Args:
    folder: of a finished run.
    experiment: what the run is made of.
    kind: one of KINDS.

  Raises:
    UserError: if there is no checkpoint, or none that can be read.
  """
  state = jax.tree.map(
      lambda x: np.zeros(x.shape, x.dtype), _state_shapes(experiment)
  )
  loss = np.zeros(len(experiment.training.seeds), np.float32)
  saved = checkpoints.Checkpoints(folder.checkpoints).restore(
      trainer.Saved(state, state.meta_params, loss), newest_only=True
  )
  if saved is None:
    raise errors.UserError(
        f'{folder.path} has no checkpoint, so its parameters are lost; train'
        ' the run again.'
    )
  return saved.state.meta_params if kind == 'last' else saved.best_params


def write(
    folder: pathlib.Path,
    run_id: str,
    *,
    kind: str,
    seeds: Sequence[int],
    meta_params: Any,
) -> None:
  """Adds a run's parameters, leaves [R, ...], to a folder of them."""
  arrays = {name: np.asarray(x, np.float32) for name, x in _named(meta_params)}
  buffer = io.BytesIO()
  np.savez_compressed(buffer, **arrays)
  folder.mkdir(parents=True, exist_ok=True)
  results.write_atomically(folder / f'{run_id}.npz', buffer.getvalue())
  entry = {'kind': kind, 'seeds': list(seeds), 'sha256': _digest(arrays)}
  index = read_index(folder) | {run_id: entry}
  results.RunFolder(folder).write(_INDEX, index)


def remove(folder: pathlib.Path, run_ids: Collection[str]) -> None:
  """Removes the parameters of runs; of others there need not be any."""
  index = read_index(folder)
  gone = [run_id for run_id in index if run_id in run_ids]
  kept = {r: entry for r, entry in index.items() if r not in gone}
  if gone:
    results.RunFolder(folder).write(_INDEX, kept)
  for run_id in gone:
    (folder / f'{run_id}.npz').unlink(missing_ok=True)


def read_index(folder: pathlib.Path) -> dict[str, dict[str, Any]]:
  """Returns run id -> {'kind', 'seeds', 'sha256'}; empty if there is none."""
  return results.RunFolder(folder).read(_INDEX) or {}


def read(folder: pathlib.Path, run_id: str, like: Any) -> Any:
  """Returns a run's parameters from a folder of them.

  Args:
    folder: that `write` wrote to.
    run_id: a run in its index.
    like: the tree to expect: arrays, or their shapes.

  Raises:
    UserError: if the file cannot be read, or holds other arrays.
  """
  path = folder / f'{run_id}.npz'
  try:
    with np.load(path) as file:
      arrays = {name: file[name] for name in file.files}
  except (OSError, ValueError, zipfile.BadZipFile) as error:
    raise errors.UserError(
        f'{path} cannot be read ({type(error).__name__}).'
    ) from error
  expected = {name: leaf.shape for name, leaf in _named(like)}
  found = {name: array.shape for name, array in arrays.items()}
  digest = read_index(folder)[run_id]['sha256']
  if found != expected or _digest(arrays) != digest:
    raise errors.UserError(
        f'{path} does not hold the parameters that belong to its run; fetch it'
        ' again, or train the run.'
    )
  leaves = [arrays[name] for name in expected]
  return jax.tree.unflatten(jax.tree.structure(like), leaves)


def _state_shapes(experiment):
  keys = jax.eval_shape(
      lambda: jax.random.split(
          jax.random.key(0), len(experiment.training.seeds)
      )
  )
  return jax.eval_shape(jax.vmap(experiment.system.init), keys)


def _named(tree):
  """Returns (name, leaf) in the order of the tree's leaves."""
  return [
      (jax.tree_util.keystr(path, simple=True, separator='/'), leaf)
      for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
  ]


def _digest(arrays):
  digest = hashlib.sha256()
  for name, array in sorted(arrays.items()):
    digest.update(f'{name} {array.dtype.str} {array.shape}\n'.encode())
    digest.update(array.tobytes())
  return digest.hexdigest()

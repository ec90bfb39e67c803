"""A run of an earlier version goes on from its checkpoints."""

import hashlib
import pathlib
import sys
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher.runs import checkpoints
from modular_hyperteacher.runs import run_folder
from tests.helpers import tiny
from tests.runs import trainer_test


def _save(folder: pathlib.Path, tree: Any, rows: bytes | None) -> None:
  """Saves as earlier versions of this package did."""
  orbax = ocp.Checkpointer(ocp.StandardCheckpointHandler())
  orbax.save(folder / 'default', args=ocp.args.StandardSave(tree))
  leaves = jax.tree_util.tree_leaves_with_path(tree)
  named = [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]
  digests = [files.hash_arrays(named)]
  if rows is not None:
    (folder / 'metrics.csv').write_bytes(rows)
    digests.append(hashlib.sha256(rows).hexdigest())
  (folder / 'sha256').write_text('\n'.join(digests))


def _tree(step: int) -> dict[str, Any]:
  return {'a': np.arange(500) * step, 'step': np.full((), step, np.int32)}


def test_a_run_goes_on_bit_for_bit(tmp_path: pathlib.Path) -> None:
  world = tiny.task()
  compiled = tiny.make_programs(world, tiny.learner(world), trainer_test._SEEDS)
  trainer_test._trainer(compiled, tmp_path / 'whole').run()
  expected_rows, expected = trainer_test._final(compiled, tmp_path / 'whole')

  path = tmp_path / 'earlier'
  run = trainer_test._trainer(compiled, path)
  run._take_steps()
  rows = run_folder.encode_metrics(run.rows)
  folder = path / 'checkpoints' / str(run.step)
  _save(folder, run._snapshot(), rows)
  resumed = trainer_test._trainer(compiled, path)
  assert resumed.step == run.step > 0
  assert (path / 'metrics.csv').read_bytes() == rows
  resumed.run()
  assert not folder.exists()  # Two newer ones are there.
  rows, saved = trainer_test._final(compiled, path)
  assert rows == expected_rows
  jax.tree.map(np.testing.assert_array_equal, saved, expected)


def test_of_one_step_the_new_one_counts(tmp_path: pathlib.Path) -> None:
  _save(tmp_path / '9', _tree(9), b'early')
  _save(tmp_path / '10', _tree(10), None)
  store = checkpoints.Checkpoints(tmp_path)
  assert store.steps() == [10, 9]
  restored = store.restore(_tree(0))
  assert restored is not None and restored['step'] == 10
  assert store.rows is None
  store.save(10, _tree(3), b'late')
  assert sorted(path.name for path in tmp_path.iterdir()) == ['10', '10.npz']
  restored = store.restore(_tree(0))
  assert restored is not None and restored['step'] == 3


@pytest.mark.parametrize('name', ['sha256', 'default/manifest.ocdbt'])
def test_a_damaged_one_is_refused_and_stays(
    tmp_path: pathlib.Path, name: str
) -> None:
  _save(tmp_path / '1', _tree(1), b'rows')
  _save(tmp_path / '2', _tree(2), b'rows')
  (tmp_path / '2' / name).write_bytes(b'x')
  with pytest.raises(errors.UserError, match='/2, from an earlier.*delete it'):
    checkpoints.Checkpoints(tmp_path).restore(_tree(0))
  assert (tmp_path / '2').exists()


def test_without_orbax_one_line_says_what_to_install(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  _save(tmp_path / '1', _tree(1), b'rows')
  monkeypatch.setitem(sys.modules, 'orbax.checkpoint', None)
  with pytest.raises(
      errors.UserError, match="/1 is .*'orbax-checkpoint>=0.12'"
  ):
    checkpoints.Checkpoints(tmp_path).restore(_tree(0))
  assert (tmp_path / '1').exists()

"""Each counterexample fits its training tasks and cannot fit the others."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.analysis import counterexamples
from modular_hyperteacher.tasks import teacher_student
from modular_hyperteacher.tasks.supports import families
from tests.helpers import slow

_CASES = [
    ('wider_student', '012'),
    ('disconnected_tasks', '01'),
    ('swapped_half', '05'),
    ('swapped_half', '23 (bridge)'),
    ('missing_module', '2'),
    ('missing_module', '02'),
]


@pytest.mark.parametrize('name', counterexamples.COUNTEREXAMPLES)
def test_every_new_combination_is_tested(name: str) -> None:
  example = counterexamples.COUNTEREXAMPLES[name](jax.random.key(0))
  assert [ood for case, ood in _CASES if case == name] == [*example.ood_masks]


@pytest.mark.parametrize('name', counterexamples.COUNTEREXAMPLES)
def test_training_tasks_are_fitted(name: str) -> None:
  example = counterexamples.COUNTEREXAMPLES[name](jax.random.key(0))
  error = counterexamples.largest_training_error(example, jax.random.key(1))
  assert error < 1e-9


@pytest.mark.parametrize('name, ood', slow.mark(_CASES, _CASES[1:]))
def test_no_latent_fits_a_new_combination(name: str, ood: Any) -> None:
  example = counterexamples.COUNTEREXAMPLES[name](jax.random.key(0))
  error = counterexamples.best_ood_error(
      example, example.ood_masks[ood], jax.random.key(2)
  )
  assert error > 0.02


def test_a_faithful_student_would_be_found() -> None:
  # Half the teacher's latent fits, from which no search starts.
  example = counterexamples.disconnected_tasks(jax.random.key(0))
  teacher = example.teacher
  example = example._replace(
      student=teacher._replace(modules=2 * teacher.modules)
  )
  error = counterexamples.best_ood_error(
      example, example.ood_masks['01'], jax.random.key(2)
  )
  assert error < 1e-9


@pytest.mark.parametrize(
    'name, compositional, connected, equal_width',
    [
        ('wider_student', True, True, False),
        ('disconnected_tasks', True, False, True),
        ('swapped_half', True, False, True),
        ('missing_module', False, True, True),
    ],
)
def test_violates_one_condition_only(
    name: str, compositional: bool, connected: bool, equal_width: bool
) -> None:
  example = counterexamples.COUNTEREXAMPLES[name](jax.random.key(0))
  assert families.is_compositional(example.train_masks) == compositional
  assert families.is_connected(example.train_masks) == connected
  widths = [
      network.readout.shape[0] for network in (example.teacher, example.student)
  ]
  assert (widths[0] == widths[1]) == equal_width
  assert len(example.teacher.modules) == len(example.student.modules)


def test_wider_student_by_hand() -> None:
  # In the task with modules 0 and 1, unit 1 is the teacher and the others
  # cancel: relu(v_1 x) and relu(v_2 x) come once with each sign.
  example = counterexamples.wider_student(jax.random.key(3))
  inputs = np.asarray(jax.random.normal(jax.random.key(4), (5, 8)))
  v = np.asarray(example.teacher.modules)[:, :, 0]
  expected = np.maximum(inputs @ (v[0] + v[1]), 0) / np.sqrt(8)
  latent = jnp.array([1.0, 1.0, 0.0], jnp.float32)
  for network in (example.teacher, example.student):
    outputs = teacher_student.respond(*network, latent, jnp.asarray(inputs))
    np.testing.assert_allclose(outputs[:, 0], expected, atol=1e-6)

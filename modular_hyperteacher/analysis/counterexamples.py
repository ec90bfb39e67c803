"""Students that fit every training task and still fail on new combinations.

Theorem 1 has three conditions: the student is no wider than the teacher, the
families are connected, and together they contain every module. For each
condition, this module builds a student that violates only that one. With the
teacher's latents, its error on all training tasks is zero. No latent fits the
held-out task.

Source: the text of Appendix A.3, as its formulas were not available. v_1, v_2,
... are linearly independent vectors. A unit computes
relu(x . (z_1 w_1 + z_2 w_2 + ...)), where w_m are its weights in module m.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.learning import levenberg_marquardt
from modular_hyperteacher.tasks import teacher_student
from modular_hyperteacher.tasks.supports import families

INPUT_DIM = 8
_NUM_INPUTS = 2000
_NUM_LATENTS = 16  # Training tasks per family.
_NUM_STARTS = 64
_NUM_ITERATIONS = 100
_Network = teacher_student.TeacherParams  # It has one output.


class Counterexample(NamedTuple):
  """A teacher, and a student that fits only its training tasks."""

  teacher: _Network
  student: _Network
  train_masks: np.ndarray  # [C, M] bool, families that the student fits
  # Name -> [M] bool, a family that it cannot fit.
  ood_masks: Mapping[str, np.ndarray]


def wider_student(key: jax.Array) -> Counterexample:
  """A student with six hidden units for the teacher's one.

  Training combines three modules v_1, v_2, v_3 in pairs, which is compositional
  and connected. Three student units each combine two modules and have a
  positive readout; three hold one module each and have a negative one. In every
  training task one pair remains and the others cancel, as in inclusion and
  exclusion. With all three modules active they do not cancel.
  """
  v = _unit_vectors(key, 3)
  zero = jnp.zeros(INPUT_DIM)
  units = [  # Weights in modules 1, 2 and 3; sign in the readout.
      ([v[0], v[1], zero], 1.0),
      ([v[0], zero, v[2]], 1.0),
      ([zero, v[1], v[2]], 1.0),
      ([v[0], zero, zero], -1.0),
      ([zero, v[1], zero], -1.0),
      ([zero, zero, v[2]], -1.0),
  ]
  return Counterexample(
      teacher=_network([(list(v), 1.0)]),
      student=_network(units),
      train_masks=_masks('01 02 12', 3),
      ood_masks={'012': _masks('012', 3)[0]},
  )


def disconnected_tasks(key: jax.Array) -> Counterexample:
  """Two modules that are never combined in training.

  The teacher's units hold v_1, v_2 in the first module and v_3, v_4 in the
  second. The student swaps the units of the second module, which matters only
  when the modules are combined.
  """
  v = _unit_vectors(key, 4)
  return Counterexample(
      teacher=_network([([v[0], v[2]], 1.0), ([v[1], v[3]], 1.0)]),
      student=_network([([v[0], v[3]], 1.0), ([v[1], v[2]], 1.0)]),
      train_masks=_masks('0 1', 2),
      ood_masks={'01': _masks('01', 2)[0]},
  )


def swapped_half(key: jax.Array) -> Counterexample:
  """The main text's example: six modules, two halves that are never combined.

  Families are 01, 12 and 34, 45. The student swaps the teacher's two hidden
  units in modules 3, 4 and 5. Family 23 would bridge the halves. The student
  does not fit it either, so training on it rules this student out.
  """
  modules = jax.random.normal(key, (6, INPUT_DIM, 2))
  swapped = jnp.concatenate([modules[:3], modules[3:, :, ::-1]])
  readout = jnp.ones((2, 1))
  return Counterexample(
      teacher=_Network(modules, readout),
      student=_Network(swapped, readout),
      train_masks=_masks('01 12 34 45', 6),
      ood_masks={'05': _masks('05', 6)[0], '23 (bridge)': _masks('23', 6)[0]},
  )


def missing_module(key: jax.Array) -> Counterexample:
  """A module that never occurs in training, and that the student lacks."""
  v = _unit_vectors(key, 3)
  return Counterexample(
      teacher=_network([(list(v), 1.0)]),
      student=_network([([v[0], v[1], jnp.zeros(INPUT_DIM)], 1.0)]),
      train_masks=_masks('01', 3),
      ood_masks={'2': _masks('2', 3)[0], '02': _masks('02', 3)[0]},
  )


COUNTEREXAMPLES: Mapping[str, Callable[[jax.Array], Counterexample]] = {
    'wider_student': wider_student,
    'disconnected_tasks': disconnected_tasks,
    'swapped_half': swapped_half,
    'missing_module': missing_module,
}


def largest_training_error(example: Counterexample, key: jax.Array) -> float:
  """Returns the largest relative squared error on random training tasks.

  Latents are standard normal on the modules of a family. The student is given
  the teacher's latent. The key is for inputs and latents.
  """
  input_key, latent_key = jax.random.split(key)
  inputs = _draw_inputs(input_key)
  num_modules = example.train_masks.shape[1]
  latents = jax.random.normal(
      latent_key, (_NUM_LATENTS, len(example.train_masks), num_modules)
  )
  latents = latents * example.train_masks[None]
  latents = latents.reshape(-1, num_modules)

  def error(latent: jax.Array) -> jax.Array:
    targets = teacher_student.respond(*example.teacher, latent, inputs)
    return _relative_error(example.student, latent, inputs, targets)

  return float(jax.jit(jax.vmap(error))(latents).max())


def best_ood_error(
    example: Counterexample, mask: np.ndarray, key: jax.Array
) -> float:
  """Returns the smallest relative squared error over the student's latents.

  The teacher's latent is the mask. The student's is optimised by
  Levenberg-Marquardt from many starts, one of which is the mask.
  """
  input_key, start_key = jax.random.split(key)
  inputs = _draw_inputs(input_key)
  latent = jnp.asarray(mask, jnp.float32)
  targets = teacher_student.respond(*example.teacher, latent, inputs)
  starts = jax.random.normal(start_key, (_NUM_STARTS, len(mask)))
  starts = jnp.concatenate([latent[None], starts])

  def residuals(student_latent: jax.Array) -> jax.Array:
    outputs = teacher_student.respond(*example.student, student_latent, inputs)
    return (outputs - targets).ravel()

  def error_from(start: jax.Array) -> jax.Array:
    best = levenberg_marquardt.minimise(residuals, start, _NUM_ITERATIONS)
    return _relative_error(example.student, best, inputs, targets)

  return float(jax.jit(lambda x: jax.lax.map(error_from, x))(starts).min())


def _relative_error(
    network: _Network, latent: jax.Array, inputs: jax.Array, targets: jax.Array
) -> jax.Array:
  outputs = teacher_student.respond(*network, latent, inputs)
  return ((outputs - targets) ** 2).sum() / (targets**2).sum()


def _draw_inputs(key: jax.Array) -> jax.Array:
  return jax.random.uniform(
      key, (_NUM_INPUTS, INPUT_DIM), minval=-1.0, maxval=1.0
  )


def _unit_vectors(key: jax.Array, num_vectors: int) -> jax.Array:
  """Draws orthogonal unit vectors, [num_vectors, X].

  The constructions need only linear independence; with orthogonal vectors all
  draws are equally far from fitting.
  """
  return jax.random.orthogonal(key, INPUT_DIM)[:num_vectors]


def _network(units: Sequence[tuple[list[jax.Array], float]]) -> _Network:
  """Builds a network from each unit's (weights per module, readout)."""
  weights, readout = zip(*units)
  by_unit = jnp.stack([jnp.stack(list(unit)) for unit in weights])
  return _Network(
      modules=jnp.moveaxis(by_unit, 0, -1), readout=jnp.array(readout)[:, None]
  )


def _masks(text: str, num_modules: int) -> np.ndarray:
  return families.masks(families.parse(text), num_modules)

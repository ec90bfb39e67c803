"""Latents inferred anew: what error is a student's own."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher.analysis import base
from modular_hyperteacher.analysis import refitting
from modular_hyperteacher.models import modular_student
from modular_hyperteacher.tasks import teacher_student

_X, _H, _M = 5, 3, 6


def _measure(
    make_student: Callable[[jax.Array], jax.Array],
    inferred: Callable[[np.ndarray], Any],
) -> base.Metrics:
  """Returns metrics of a student made from its teacher's modules [M, X, H].

  `inferred(z)` is what the student's inference found for latents [tasks, M].
  """
  task = teacher_student.make(
      num_modules=_M,
      task_support='triangles',
      latent_type='continuous',
      sampler='released',
      input_dim=_X,
      output_dim=1,
      teacher_hidden_dim=_H,
      num_support=64,
      num_query=32,
      num_evaluation_query=32,
  )
  model = modular_student.make(
      input_dim=_X, output_dim=1, hidden_dim=_H, num_modules=_M
  )
  teacher = task.init(jax.random.key(0))
  teacher = teacher._replace(readout=jnp.ones((_H, 1)))
  latents = {
      split: np.asarray(
          jax.vmap(
              lambda key, split=split: task.sample_latent(teacher, key, split)
          )(jax.random.split(jax.random.key(1), 40))
      )
      for split in ('test', 'ood')
  }
  adapted = base.Adapted(
      task_params=teacher,
      meta_params={
          'modules': make_student(teacher.modules),
          'readout': teacher.readout,
          'latent_start': jnp.ones(_M),
      },
      latents=latents,
      fast_params={s: inferred(z[:, 0]) for s, z in latents.items()},
      key=jax.random.key(2),
  )
  analysis = refitting.make_analysis(task, model)
  assert set(analysis.splits) == {'test', 'ood'}
  return analysis.measure(adapted)


@pytest.mark.slow
@pytest.mark.parametrize('shift', [0.0, 0.5])
def test_error_of_the_inference_is_told_from_the_students(shift: float) -> None:
  metrics = _measure(lambda modules: modules, lambda z: z + shift)
  for of_split in metrics.values():
    assert of_split['refit_relative_loss_max'] < 1e-10
    if shift:
      assert of_split['inference_excess'] > 0.01
    else:
      assert abs(of_split['inference_excess']) < 1e-10


def _swap_in_one_half(modules: jax.Array) -> jax.Array:
  return jnp.concatenate([modules[:3], modules[3:, :, ::-1]])


def test_students_of_disconnected_tasks_cannot_fit_new_ones() -> None:
  metrics = _measure(_swap_in_one_half, lambda z: z)
  assert metrics['test']['refit_relative_loss_max'] < 1e-10
  assert metrics['ood']['refit_relative_loss'] > 0.01
  assert (
      metrics['ood']['refit_relative_loss']
      <= metrics['ood']['refit_relative_loss_max']
  )


def test_a_poor_start_is_overcome() -> None:
  # Where all weights are cut off, there is no gradient to leave by.
  metrics = _measure(lambda modules: modules, jnp.zeros_like)
  assert metrics['ood']['refit_relative_loss_max'] < 1e-8


@pytest.mark.parametrize('lost', ['modules', 'latents'])
def test_a_lost_student_has_no_numbers(lost: str) -> None:
  factor = {'modules': 1.0, 'latents': 1.0, lost: np.nan}
  metrics = _measure(
      lambda modules: factor['modules'] * modules,
      lambda z: factor['latents'] * z,
  )
  for of_split in metrics.values():
    assert len(of_split) == 3 and np.isnan(list(of_split.values())).all()


def test_every_combination_that_was_drawn_is_looked_at() -> None:
  rng = np.random.default_rng(0)
  masks = rng.integers(0, 2, (500, 1, _M))
  latents = masks * rng.uniform(0.5, 1, (500, 1, _M))
  chosen = refitting.choose_tasks(latents)
  combinations = {tuple(mask) for mask in masks[:, 0]}
  assert {tuple(mask) for mask in masks[chosen, 0]} == combinations
  assert chosen[:32].tolist() == list(range(32))
  # None twice, but for those of the first 32.
  more = [tuple(mask) for mask in masks[chosen[32:], 0]]
  assert len(set(more)) == len(more) == len(chosen) - 32
  assert refitting.choose_tasks(latents[:5]).tolist() == list(range(5))

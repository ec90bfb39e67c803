"""Linear teachers and students, trained by the package's own two loops.

  y = x' sum_m z_m Theta_m,   Theta [M, X]

Every task is drawn anew. Its latent is inferred by Levenberg-Marquardt, and the
student's modules follow plain gradient descent on the query loss, as in the
theory. A task's X examples are orthogonal, so that their second moment is the
identity and its loss that of infinitely many.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import optax

from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import objectives
from modular_hyperteacher.tasks import teacher_student

_INNER = inner_loop.InnerConfig(
    num_steps=6, solver='levenberg_marquardt', second_order=False
)


class Setting(NamedTuple):
  """What a student is trained on, and how."""

  masks: np.ndarray  # One row per family, [C, M].
  latent_type: str  # 'discrete' or 'continuous'
  learning_rate: float
  num_steps: int
  record_every: int  # Steps.
  meta_batch_size: int = 64


def draw_orthogonal(key: jax.Array, shape: tuple[int, int]) -> jax.Array:
  """Returns orthonormal rows [n, X] of a random direction; n at most X."""
  rows = jax.random.normal(key, shape)
  return jnp.linalg.qr(rows.T)[0].T


def make_model(num_modules: int, input_dim: int) -> models.MetaModel:
  """Returns a linear student with M-hat modules [M-hat, X] and no readout."""
  return models.MetaModel(
      init=lambda key: jax.random.normal(key, (num_modules, input_dim)),
      init_fast=lambda meta_params: jnp.zeros(num_modules),
      encode=models.identity_encoding,
      decode=lambda meta_params, fast, inputs: (inputs @ (fast @ meta_params))[
          :, None
      ],
  )


def train(
    keys: jax.Array, teachers: jax.Array, starts: jax.Array, setting: Setting
) -> np.ndarray:
  """Returns students' modules over training, [R, records + 1, M-hat, X].

  A seed has a key, [R], that draws its tasks, a teacher Theta, [R, M, X], and a
  start W(0), [R, M-hat, X].
  """
  run = jax.vmap(functools.partial(_train, setting=setting))
  return np.asarray(jax.jit(run)(keys, teachers, starts))


def _train(
    key: jax.Array, teacher: jax.Array, start: jax.Array, setting: Setting
) -> jax.Array:
  """Returns one student's modules over training, [records + 1, M-hat, X]."""
  model = make_model(*start.shape)
  adapt = inner_loop.InnerLoop(model, objectives.REGRESSION, _INNER).adapt
  inputs = math.sqrt(teacher.shape[1]) * jnp.eye(teacher.shape[1])

  def one_task(meta_params: jax.Array, key: jax.Array) -> jax.Array:
    latent_key, adapt_key = jax.random.split(key)
    latent = teacher_student.draw_latent(
        latent_key,
        setting.masks,
        discrete=setting.latent_type == 'discrete',
        sampler='released',
    )[0]
    batch = tasks.examples(inputs, (inputs @ (latent @ teacher))[:, None])
    draw = inner_loop.from_support(batch, None)
    fast = adapt(meta_params, model.init_fast(meta_params), draw, adapt_key)
    outputs = model.decode(meta_params, fast, batch.inputs)
    return objectives.REGRESSION.loss(outputs, batch)

  def mean_loss(
      meta_params: jax.Array, task_params: Any, keys: jax.Array, _: jax.Array
  ) -> tuple[jax.Array, dict[str, jax.Array]]:
    del task_params
    return jax.vmap(one_task, (None, 0))(meta_params, keys).mean(), {}

  training = outer_loop.make_training(
      init_params=lambda _: start,
      loss=mean_loss,
      optimizer=optax.sgd(setting.learning_rate),
      meta_batch_size=setting.meta_batch_size,
      task_chunk_size=None,
  )
  on_one_device = functools.partial(
      jax.vmap, axis_name=outer_loop.DEVICE_AXIS, axis_size=1, in_axes=None
  )

  def step(state: outer_loop.TrainState) -> outer_loop.TrainState:
    new = on_one_device(lambda s: training.step(s, None, key)[0])(state)
    return jax.tree.map(lambda x: x[0], new)

  def record(
      state: outer_loop.TrainState, _: None
  ) -> tuple[outer_loop.TrainState, jax.Array]:
    new, _ = lax.scan(
        lambda s, _: (step(s), None), state, length=setting.record_every
    )
    return new, state.meta_params

  number = setting.num_steps // setting.record_every
  last, kept = lax.scan(record, training.init(key), length=number)
  return jnp.concatenate([kept, last.meta_params[None]])

"""The theory's world, student and alignment against the released code."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from modular_hyperteacher.analysis import alignment
from modular_hyperteacher.analysis import ridge
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import base as models
from modular_hyperteacher.models import modular_student
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import objectives
from modular_hyperteacher.tasks import teacher_student
from modular_hyperteacher.tasks.supports import latents
from tests.helpers import golden

_OUTER = outer_loop.OuterConfig(
    learning_rate=1e-3,
    weight_decay=0.0,
    clip_norm=None,
    max_consecutive_skips=0,
    meta_batch_size=4,
)


@pytest.fixture(name='data')
def _data() -> dict[str, Any]:
  return golden.load('theory')


@pytest.fixture(name='meta_params')
def _meta_params(data: dict[str, Any]) -> dict[str, jax.Array]:
  return {
      'modules': jnp.asarray(data['student_modules']),
      'readout': jnp.asarray(data['student_readout']),
      'latent_start': jnp.asarray(data['latent_start']),
  }


@pytest.fixture(name='case', params=['discrete', 'continuous'])
def _case(
    request: pytest.FixtureRequest, data: dict[str, Any]
) -> dict[str, Any]:
  prefix = f'{request.param}_'
  return {
      name.removeprefix(prefix): value
      for name, value in data.items()
      if name.startswith(prefix)
  }


def _student() -> models.MetaModel:
  return modular_student.make(
      input_dim=16, output_dim=4, hidden_dim=32, num_modules=12
  )


def _targets(data: dict[str, Any], latent: Any, inputs: Any) -> jax.Array:
  return jax.vmap(teacher_student.respond, (None, None, 0, 0))(
      data['teacher_modules'], data['teacher_readout'], latent, inputs
  )


def _batch(data: dict[str, Any], case: dict[str, Any], name: str) -> base.Batch:
  inputs = jnp.asarray(data[f'{name}_x'])
  return base.Batch(
      inputs, _targets(data, case['latent'], inputs), jnp.ones(inputs.shape[:2])
  )


def test_teacher(data: dict[str, Any], case: dict[str, Any]) -> None:
  targets = _targets(data, case['latent'], data['outer_x'])
  golden.assert_close(targets, case['teacher_y'], 5e-5)


def test_discrete_latents_have_unit_norm(data: dict[str, Any]) -> None:
  latent = data['discrete_latent']
  golden.assert_close(latents.normalise(latent > 0), latent, 5e-7)


def test_inferred_latents(
    data: dict[str, Any], case: dict[str, Any], meta_params: Any
) -> None:
  inner = inner_loop.InnerLoop(
      _student(),
      objectives.REGRESSION,
      inner_loop.InnerConfig(
          num_steps=300, learning_rate=0.003, second_order=False
      ),
  )
  support = _batch(data, case, 'inner')

  def infer(batch: base.Batch) -> Any:
    draw = inner_loop.from_support(batch, None)
    start = _student().init_fast(meta_params)
    return inner.adapt(meta_params, start, draw, jax.random.key(0))

  def loss(latent: jax.Array, batch: base.Batch) -> jax.Array:
    outputs = _student().decode(meta_params, latent, batch.inputs)
    return objectives.REGRESSION.loss(outputs, batch)

  inferred = jax.vmap(infer)(support)
  golden.assert_close(inferred, case['inferred_latent'], 5e-5)
  after = jax.vmap(loss)(inferred, support)
  golden.assert_close(after, case['inner_loss_after'], 5e-5)
  start = jnp.broadcast_to(meta_params['latent_start'], inferred.shape)
  before = jax.vmap(loss)(start, support)
  golden.assert_close(before, case['inner_loss_before'], 5e-5)


def test_outer_step(
    data: dict[str, Any], case: dict[str, Any], meta_params: Any
) -> None:
  query = _batch(data, case, 'outer')

  def outer_loss(meta_params: Any) -> jax.Array:
    def score(latent: jax.Array, batch: base.Batch) -> jax.Array:
      outputs = _student().decode(meta_params, latent, batch.inputs)
      return objectives.REGRESSION.loss(outputs, batch)

    return jax.vmap(score)(jnp.asarray(case['inferred_latent']), query).mean()

  loss, gradient = jax.value_and_grad(outer_loss)(meta_params)
  golden.assert_close(loss, case['outer_loss'], 5e-5)
  optimizer = outer_loop.make_optimizer(_OUTER, _student().is_learned)
  stored = dict(gradient)
  for name in ('modules', 'readout'):
    golden.assert_close(gradient[name], case[f'grad_{name}'], 5e-5, name)
    stored[name] = jnp.asarray(case[f'grad_{name}'])
  updates, _ = optimizer.update(
      stored, optimizer.init(meta_params), meta_params
  )
  after: Any = optax.apply_updates(meta_params, updates)
  for name in ('modules', 'readout'):
    np.testing.assert_allclose(
        after[name], case[f'after1_{name}'], atol=1e-6, err_msg=name
    )
  np.testing.assert_array_equal(
      after['latent_start'], meta_params['latent_start']
  )


@pytest.mark.parametrize('name', ['wide', 'matched'])
def test_alignment(name: str) -> None:
  data = {
      key.removeprefix(f'{name}_'): value
      for key, value in golden.load('theory_alignment').items()
  }
  regression = alignment.fit_latents(data['zhat'], data['z'])
  golden.assert_close(regression, data['D'], 2e-3)
  fitted = ridge.r2(data['zhat'] @ data['D'].T, data['z'])
  golden.assert_close(fitted, data['r2'], 5e-5)
  found = alignment.align(
      data['teacher_modules'], data['student_modules'], regression
  )
  for statistic, value in found.items():
    np.testing.assert_allclose(
        value, data[statistic], atol=2e-3, err_msg=statistic
    )

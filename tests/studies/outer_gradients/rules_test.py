"""Rules on networks: against finite differences, over devices, refusals."""

from collections.abc import Callable, Iterator
import functools
from typing import Any

import jax
from jax import flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.learning import estimates
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import base
from modular_hyperteacher.studies.outer_gradients import proximal
from modular_hyperteacher.studies.outer_gradients import rules
from modular_hyperteacher.studies.outer_gradients.configs import cr_training
from modular_hyperteacher.tasks import objectives
from tests.helpers import tiny
from tests.helpers import trees

_SIZES = {'input_dim': 3, 'output_dim': 4, 'num_hidden': 2, 'hidden_dim': 4}
_OUTER: dict[str, Any] = {
    'learning_rate': 1e-2,
    'weight_decay': 1e-2,
    'clip_norm': 1.0,
    'max_consecutive_skips': 0,
    'meta_batch_size': 4,
}
_NUDGE: dict[str, Any] = {'num_nudged_steps': 3, 'max_query_loss': 10.0}
_RULES: dict[str, outer_loop.OuterConfig] = {
    'first_order': rules.FirstOrder(gradient='first_order', **_OUTER),
    'truncated': rules.Truncated(
        gradient='truncated', num_differentiated=2, **_OUTER
    ),
    'implicit_cg': rules.Implicit(
        gradient='implicit_cg', num_iterations=3, **_OUTER
    ),
    'contrastive_symmetric': rules.Contrastive(
        gradient='contrastive_symmetric', beta=0.1, **_NUDGE, **_OUTER
    ),
    'linearised_control': rules.Contrastive(
        gradient='linearised_control', beta=0.1, **_NUDGE, **_OUTER
    ),
}


def _inner(num_steps: int, **fields: Any) -> inner_loop.InnerConfig:
  fields = {'solver': 'sgd', 'learning_rate': 0.5} | fields
  return inner_loop.InnerConfig(num_steps=num_steps, **fields)


@pytest.fixture(name='precise')
def fixture_precise() -> Iterator[None]:
  with jax.enable_x64(True):
    yield


@functools.cache
def _task() -> Any:
  """Returns a task in float64."""
  world = tiny.task()
  sample = jax.jit(functools.partial(world.sample, split='train'))
  return trees.double(sample(world.init(jax.random.key(0)), jax.random.key(1)))


def _problem(
    model: base.MetaModel, inner: inner_loop.InnerConfig
) -> estimates.Problem:
  return estimates.Problem(tiny.task(), model, inner)


def _gradient(rule: outer_loop.OuterConfig, problem: Any, params: Any) -> Any:
  estimate, task = rule.make_estimate(problem), _task()
  found, metrics = jax.jit(
      jax.grad(
          lambda x: estimate(x, None, task, jax.random.key(2)), has_aux=True
      )
  )(params)
  return flatten_util.ravel_pytree(found)[0], metrics


def _slope(
    loss: Callable[[Any], jax.Array], params: Any, direction: jax.Array
) -> float:
  """Returns the directional derivative, by central differences."""
  flat, unravel = flatten_util.ravel_pytree(params)
  at = jax.jit(lambda size: loss(unravel(flat + size * direction)))
  return float((at(1e-5) - at(-1e-5)) / 2e-5)


@pytest.mark.usefixtures('precise')
@pytest.mark.parametrize('learn', [False, True])
def test_a_convex_problem_against_finite_differences(learn: bool) -> None:
  """ANIL with a proximal term, converged: the bilevel gradient is exact."""
  model = proximal.anil(proximal=0.3, learn_proximal=learn, **_SIZES)
  # Without biases, whole rows would stand at the kinks of units.
  params = jax.tree.map(
      lambda x: x + 0.1 * jax.random.normal(jax.random.key(5), x.shape),
      trees.double(model.init(jax.random.key(3))),
  )
  problem = _problem(model, _inner(600))

  task = _task()

  def outer_loss(meta_params: Any) -> jax.Array:
    key = jax.random.key(2)
    fast_params = problem.adapt(meta_params, None, task, key)
    return problem.score(meta_params, fast_params, task.query)[0]

  def contrastive(name: str, beta: float) -> rules.Contrastive:
    nudge = {'num_nudged_steps': 600, 'max_query_loss': 10.0}
    return rules.Contrastive(gradient=name, beta=beta, **nudge, **_OUTER)

  implicit = rules.Implicit(gradient='implicit_cg', num_iterations=40, **_OUTER)
  exact, _ = _gradient(implicit, problem, params)
  direction = jax.random.normal(jax.random.key(4), exact.shape)
  slope = _slope(outer_loss, params, direction)
  assert float(exact @ direction) == pytest.approx(slope, rel=1e-5)
  norm = np.linalg.norm(exact)
  for name, beta, error in (
      ('contrastive_symmetric', 0.01, 1e-3),
      ('contrastive_second_order', 0.01, 1e-3),
      ('contrastive_standard', 0.001, 1e-2),
      ('linearised_control', 0.001, 1e-2),
  ):
    found, _ = _gradient(contrastive(name, beta), problem, params)
    assert np.linalg.norm(found - exact) < error * norm, name
  # Errors fall as beta does, and as its square.
  for name, factor in (
      ('contrastive_standard', 2),
      ('contrastive_symmetric', 4),
  ):
    large, small = (
        np.linalg.norm(
            _gradient(contrastive(name, b), problem, params)[0] - exact
        )
        for b in (0.04, 0.02)
    )
    assert large / small == pytest.approx(factor, rel=0.1)


@pytest.mark.usefixtures('precise')
def test_norms_have_gradients_unless_stopped() -> None:
  """Outputs do not depend on norms, so slopes along embeddings are zero."""
  sizes = {**_SIZES, 'num_modules': 5}
  batch = _task().support
  for stop_norm in (False, True):
    model = proximal.linear_hypernetwork(
        proximal=0.0, stop_norm=stop_norm, **sizes
    )
    params = trees.double(model.init(jax.random.key(3)))
    fast = model.init_fast(params)

    def loss(fast_params: Any, m: Any = model, p: Any = params) -> jax.Array:
      outputs = m.predict(p, fast_params, batch.inputs)
      return objectives.SOFT_LABELS.loss(outputs, batch)

    along = jax.tree.map(
        lambda x, g: abs(jnp.vdot(x, g)), fast, jax.grad(loss)(fast)
    )['embeddings']
    assert all((size < 1e-6) != stop_norm for size in along.values())


@pytest.mark.usefixtures('precise')
@pytest.mark.parametrize('momentum', [0.0, 0.9])
def test_all_steps_truncated_are_unrolled(momentum: float) -> None:
  """And fewer change the gradient, but not the loss."""
  model = proximal.maml(proximal=0.1, **_SIZES)
  params = trees.double(model.init(jax.random.key(3)))
  problem = _problem(model, _inner(4, momentum=momentum))
  unrolled = outer_loop.OuterConfig(**_OUTER)
  expected, metrics = _gradient(unrolled, problem, params)
  for number in (4, 2):
    rule = rules.Truncated(
        gradient='truncated', num_differentiated=number, **_OUTER
    )
    found, measured = _gradient(rule, problem, params)
    same = np.allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert same == (number == 4)
    assert float(measured['loss']) == pytest.approx(float(metrics['loss']))


def test_a_proximal_term_pulls_towards_the_start() -> None:
  model = proximal.maml(proximal=0.1, **_SIZES)
  learned = proximal.maml(proximal=0.1, learn_proximal=True, **_SIZES)
  params = model.init(jax.random.key(0))
  moved = jax.tree.map(lambda x: x + 2.0, params)
  number = base.num_params(params)
  assert model.penalty is not None and learned.penalty is not None
  expected = pytest.approx(0.5 * 0.1 * 4 * number, rel=1e-5)
  assert float(model.penalty(params, moved)) == expected
  own = learned.init(jax.random.key(0))
  assert float(learned.penalty(own, moved)) == expected


@pytest.mark.parametrize('name', _RULES)
def test_devices_and_chunks_change_nothing(name: str) -> None:
  world = tiny.task()
  model = proximal.maml(proximal=0.1, **_SIZES)
  results = []
  for num_devices, chunk in ((1, None), (2, None), (1, 1)):
    rule = _RULES[name]
    object.__setattr__(rule, 'task_chunk_size', chunk)
    learner = outer_loop.make_learner(world, model, _inner(3), rule)
    step = tiny.on_devices(learner.step, num_devices)
    state, metrics = step(
        learner.init(jax.random.key(1)),
        world.init(jax.random.key(0)),
        jax.random.key(2),
    )
    results.append((state.meta_params, metrics))
  for other in results[1:]:
    trees.assert_close(results[0], other, rtol=2e-4, atol=2e-6)


def _config(model: str, **changes: Any) -> dict[str, Any]:
  (run,) = [
      run
      for run in sweeps.expand(cr_training.get_config('smoke'))
      if run.run_id.startswith(f'random-{model}-')
  ]
  for path, value in changes.items():
    *parents, leaf = path.split('__')
    functools.reduce(lambda tree, x: tree[x], parents, run.config)[leaf] = value
  return run.config


@pytest.mark.parametrize(
    'rule, changes, message',
    [
        (
            'contrastive_symmetric',
            {'model__inner__solver': 'adamw', 'model__inner__eps_root': 1e-7},
            (
                'model.inner.solver is adamw; with model.outer.gradient'
                ' contrastive_symmetric it must be sgd'
            ),
        ),
        (
            'contrastive_standard',
            {'model__inner__fresh_support': True},
            (
                'model.inner.fresh_support is True; with model.outer.gradient'
                ' contrastive_standard it must be False'
            ),
        ),
        (
            'implicit_cg',
            {'model__inner__batch_size': 4},
            'model.inner.batch_size is 4; .* it must be None',
        ),
        (
            'contrastive_symmetric',
            {'model__outer__max_query_loss': None},
            'model.outer.max_query_loss is None; .* negative phase',
        ),
        (
            'truncated',
            {'model__outer__num_differentiated': 11},
            'num_differentiated is 11; it must be at most .* 10',
        ),
        (
            'implicit_cg',
            {'model__outer__gradient': 't1_t2'},
            'num_iterations is 5; with gradient t1_t2 it must be None',
        ),
        (
            'first_order',
            {'model__outer__gradient': 'second_order'},
            "model.outer.gradient is 'second_order'; choose one of unrolled,",
        ),
        (
            'first_order',
            {'model__outer__beta': 0.1},
            'model.outer.beta does not exist',
        ),
        (
            'first_order',
            {'model__stop_norm': 1},
            'model.stop_norm',
        ),
        (
            'first_order',
            {'model__hidden': 1},
            'model.hidden does not exist',
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    rule: str, changes: Any, message: str
) -> None:
  config = _config(f'linear_hypernetwork_{rule}', **changes)
  with pytest.raises(errors.UserError, match=message):
    build.build(config, 1)


def test_only_hypernetworks_have_norms_to_stop() -> None:
  with pytest.raises(errors.UserError, match='model.stop_norm is True'):
    proximal.maml(proximal=0.1, stop_norm=True, **_SIZES)
  with pytest.raises(errors.UserError, match='model.proximal is 0'):
    proximal.maml(proximal=0.0, learn_proximal=True, **_SIZES)


def test_unrolled_is_no_part_of_a_run_id() -> None:
  config = cr_training.get_config('smoke')
  named = {run.run_id for run in sweeps.expand(config)}
  for block in config.models.values():
    if block.outer.gradient == 'unrolled':
      del block.outer['gradient']
  assert {run.run_id for run in sweeps.expand(config)} == named

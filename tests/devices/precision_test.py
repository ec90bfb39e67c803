"""Matrix products are exact to float32 unless a config asks for less."""

from collections.abc import Callable, Iterator
import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

from modular_hyperteacher.configs import fig2d
from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.configs import fig4e
from modular_hyperteacher.devices import precision
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.pretrained import student
from modular_hyperteacher.studies.meta_seq2seq.configs import scan_me
from tests.helpers import built
from tests.helpers import slow

_LEVELS = {
    'float32': jax.lax.Precision.HIGHEST,
    'tensorfloat32': jax.lax.Precision.HIGH,
    'bfloat16': jax.lax.Precision.DEFAULT,
}


def _run(module: Any, which: str, level: str | None = None) -> sweeps.Run:
  config = module.get_config('smoke')
  if level:
    config.training.matmul_precision = level
  return sweeps.select(sweeps.expand(config), [which])[0]


def _products(jaxpr: Any) -> Iterator[Any]:
  """Yields the precision of every product of a program."""
  for equation in jaxpr.eqns:
    if equation.primitive.name == 'dot_general':
      yield equation.params['precision']
    for value in equation.params.values():
      for sub in value if isinstance(value, (tuple, list)) else [value]:
        sub = getattr(sub, 'jaxpr', sub)
        if hasattr(sub, 'eqns'):
          yield from _products(sub)


def _trace(function: Callable[..., Any], *args: Any) -> set[Any]:
  """Traces a function of one seed, on one device; returns the precisions."""
  mapped = jax.vmap(
      function, axis_name=outer_loop.DEVICE_AXIS, axis_size=1, in_axes=None
  )
  return set(_products(jax.make_jaxpr(mapped)(*args).jaxpr))


# Module, run, level of precision.
_QUICK = ((fig3b, 'model=linear_hypernetwork', 'bfloat16'),)
_SLOW = (
    (fig3b, 'model=linear_hypernetwork', None),
    (fig2d, 'solver=levenberg_marquardt', None),
    (fig4e, 'model=anil', None),
    (scan_me, 'model=meta_seq2seq', None),
)


@pytest.mark.parametrize(
    'module, which, level',
    slow.mark([*_QUICK, *_SLOW], _SLOW),
)
def test_every_product_of_training_has_the_level_asked_for(
    module: Any, which: str, level: str | None
) -> None:
  """Those of derivatives and of data, too, in both systems."""
  system = build.build(_run(module, which, level).config, 1).system
  key = jax.random.key(0)
  drawn = system.draw_tasks(key)
  state = jax.eval_shape(system.init, key)
  expected = _LEVELS[level or 'float32']
  in_step = _trace(system.step, state, drawn.task_params, key)
  in_evaluation = _trace(system.evaluate, state.meta_params, *drawn, key)
  assert in_step == in_evaluation == {(expected, expected)}


@pytest.mark.parametrize('level', precision.LEVELS)
def test_levels_are_jax_s(level: str) -> None:
  product = precision.at(level, lambda x: x @ x)
  jaxpr = jax.make_jaxpr(jax.grad(lambda x: product(x).sum()))(np.eye(2)).jaxpr
  assert set(_products(jaxpr)) == {(_LEVELS[level],) * 2}


def test_trained_models_keep_their_level() -> None:
  run = _run(fig3b, 'model=linear_hypernetwork', 'bfloat16')
  experiment = built.bilevel_experiment(run.config)
  (root,) = build.root_keys(experiment.training)
  (drawn,) = build.draw_tasks(experiment)
  trained = student.Student(
      run.config,
      experiment,
      experiment.training.seeds[0],
      *drawn,
      experiment.system.init(root).meta_params,
  )
  task = trained.sample('test', jax.random.key(1))
  used = set(_products(jax.make_jaxpr(trained.adapt)(task).jaxpr))
  assert used == {(jax.lax.Precision.DEFAULT,) * 2}


def test_the_default_level_is_no_part_of_a_run_s_name() -> None:
  """So that results from before there were levels stay what they are."""
  default = _run(fig3b, 'model=maml')
  lower = _run(fig3b, 'model=maml', 'bfloat16')
  assert 'matmul_precision' not in default.config['training']
  config = dict(lower.config, training=dict(lower.config['training']))
  assert config['training'].pop('matmul_precision') == 'bfloat16'
  assert config == default.config
  assert lower.run_id != default.run_id
  told = sweeps.deviations(lower, sweeps.expand(fig3b.get_config('paper')))
  assert told['training.matmul_precision'] == {
      'value': 'bfloat16',
      'published': 'float32',
  }
  assert 'training.matmul_precision' not in sweeps.deviations(
      default, sweeps.expand(fig3b.get_config('paper'))
  )


def test_results_from_before_there_were_levels_can_be_read() -> None:
  run = _run(fig3b, 'model=maml')
  training = build.build(run.config, 1).training
  assert training.matmul_precision == 'float32'
  fields = {field.name for field in dataclasses.fields(training)}
  assert set(run.config['training']) == fields - {'matmul_precision'}

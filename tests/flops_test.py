"""The derived operation counts against what programs actually multiply."""

import functools

import jax
import pytest

from configs import amortised
from configs import fig2c
from configs import fig3b
from configs import fig4c
from configs import fig4e
from modular_hyperteacher import experiment as experiments
from modular_hyperteacher import flops
from modular_hyperteacher import sweeps
from modular_hyperteacher.learning import outer_loop


def _count(jaxpr):
  """Operations of all matrix products in a program, loops unrolled."""
  total = 0
  for equation in jaxpr.eqns:
    if equation.primitive.name == 'dot_general':
      (contracted, _), _ = equation.params['dimension_numbers']
      shape = equation.invars[0].aval.shape
      inner = functools.reduce(lambda n, i: n * shape[i], contracted, 1)
      total += 2 * equation.outvars[0].aval.size * inner
    repeats = equation.params.get('length', 1)
    for value in equation.params.values():
      values = value if isinstance(value, (tuple, list)) else [value]
      for sub in values:
        sub = getattr(sub, 'jaxpr', sub)
        if hasattr(sub, 'eqns'):
          total += repeats * _count(sub)
  return total


@pytest.mark.parametrize(
    'model', ['anil', 'maml', 'linear_hypernetwork', 'nonlinear_hypernetwork']
)
@pytest.mark.parametrize('figure', [fig3b, fig4c, fig4e])
def test_an_outer_step_multiplies_no_more_than_it_must(figure, model):
  runs = sweeps.select(
      sweeps.expand(figure.get_config('paper')),
      [f'model={model}', 'task_support=random'],
  )
  # What is counted in addition is small: trunks, embeddings of the reference,
  # and in the goals world walls, which are multiplied once per task.
  assert 0.99 < _ratio(runs[0].config) < 1.2


@pytest.mark.parametrize('num_steps', [0, 3])
@pytest.mark.parametrize('kind', ['linear', 'nonlinear'])
def test_an_outer_step_of_amortised_inference(kind, num_steps):
  model = f'model=amortised_{kind}_hypernetwork'
  runs = sweeps.select(
      sweeps.expand(amortised.get_config('paper')),
      [model, 'task_support=random', f'inner.num_steps={num_steps}'],
  )
  assert 0.99 < _ratio(runs[0].config) < 1.2


def test_an_outer_step_of_the_theory():
  (config,) = {
      run.config['model']['inner']['solver']: run.config
      for run in sweeps.expand(fig2c.get_config('paper'))
  }.values()
  # Every inner step draws a query set as well, which the compiler leaves out.
  assert 0.99 < _ratio(config) < 1.25


def _ratio(config):
  """Products of a step of one seed, relative to those that it needs."""
  config['execution']['task_chunk_size'] = None
  built = experiments.build(config, 1)
  state = jax.eval_shape(built.learner.init, jax.random.key(0))
  world = built.task.init(jax.random.key(0))
  mapped = jax.make_jaxpr(
      lambda *args: jax.vmap(
          built.learner.step,
          (None, None, 0),
          axis_name=outer_loop.DEVICE_AXIS,
      )(*args)
  )
  jaxpr = mapped(state, world, jax.random.key(1)[None])
  return _count(jaxpr.jaxpr) / flops.outer_step(config)

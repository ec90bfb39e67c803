"""The derived operation counts against what programs actually multiply."""

from collections.abc import Callable
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import pytest

from modular_hyperteacher.configs import fig2c
from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.configs import fig4c
from modular_hyperteacher.configs import fig4e
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.profiling import flops
from modular_hyperteacher.studies.amortised.configs import amortised
from tests.helpers import slow
from tests.profiling import derived_flops


@pytest.mark.parametrize(
    'model',
    slow.mark(models.MODELS, {*models.MODELS} - {'linear_hypernetwork'}),
)
@pytest.mark.parametrize(
    'figure', slow.mark([fig3b, fig4c, fig4e], [fig4c, fig4e])
)
def test_an_outer_step_multiplies_no_more_than_it_must(
    figure: Any, model: str
) -> None:
  runs = sweeps.select(
      sweeps.expand(figure.get_config('paper')),
      [f'model={model}', 'task_support=random'],
  )
  # What is counted in addition is small: trunks, embeddings of the reference,
  # and in the goals world walls, which are multiplied once per task.
  assert 0.99 < _ratio(runs[0].config) < 1.2


@pytest.mark.parametrize(
    'inference', slow.mark(['amortised', 'combined'], ['combined'])
)
@pytest.mark.parametrize(
    'kind', slow.mark(['linear', 'nonlinear'], ['nonlinear'])
)
def test_an_outer_step_of_amortised_inference(
    kind: str, inference: str
) -> None:
  model = f'model={inference}_{kind}_hypernetwork'
  runs = sweeps.select(
      sweeps.expand(amortised.get_config('paper')),
      [model, 'task_support=random'],
  )
  assert 0.99 < _ratio(runs[0].config) < 1.2


def test_an_outer_step_of_the_theory() -> None:
  (config,) = {
      run.config['model']['inner']['solver']: run.config
      for run in sweeps.expand(fig2c.get_config('paper'))
  }.values()
  # Every inner step draws a query set as well, which the compiler leaves out.
  assert 0.99 < _ratio(config) < 1.25


def test_what_can_be_trained_can_be_counted() -> None:
  config = fig3b.get_config('smoke')
  config.task.fraction_ood = 0.0  # Not used by this support.
  (run,) = sweeps.select(
      sweeps.expand(config), ['model=maml', 'task_support=non_compositional']
  )
  assert flops.outer_step(run.config)


def _ratio(config: dict[str, Any]) -> float:
  """Counted operations, relative to those that the mathematics needs."""
  counted = flops.outer_step(config)
  assert counted is not None
  return counted / derived_flops.outer_step(config)


def _product(x: jax.Array) -> jax.Array:
  return x @ x


_MATRIX = jnp.ones((3, 3))


@pytest.mark.parametrize(
    'function, expected',
    [
        (_product, 2 * 27),
        (jax.checkpoint(_product), 2 * 27),
        (lambda x: lax.scan(lambda c, _: (c @ x, None), x, length=5)[0], 270),
        (lambda x: lax.cond(x[0, 0] > 0, _product, lambda y: y, x), 54),
        (lambda x: lax.fori_loop(0, 4, lambda _, c: c @ x, x), 4 * 54),
        (lambda x: jnp.linalg.cholesky(x), 9),
        (lambda x: jax.vmap(_product)(jnp.stack([x, x])), 2 * 54),
        (
            lambda x: lax.conv(
                x[None, None], x[None, None, :2, :2], (1, 1), 'VALID'
            ),
            2 * 4 * 4,
        ),
    ],
    ids=[
        'product',
        'remat',
        'scan',
        'cond',
        'fori',
        'cholesky',
        'vmap',
        'conv',
    ],
)
def test_operations_are_counted(
    function: Callable[[jax.Array], jax.Array], expected: float
) -> None:
  assert flops.count(function, _MATRIX) == expected


@pytest.mark.parametrize(
    'function',
    [
        lambda x: lax.while_loop(lambda c: c.sum() < 9, _product, x),
        lambda x: jax.pure_callback(lambda y: y, x, x) @ x,
    ],
    ids=['while', 'callback'],
)
def test_what_cannot_be_counted_is_unknown(
    function: Callable[[jax.Array], jax.Array],
) -> None:
  with pytest.raises(flops.UnknownError):
    flops.count(function, _MATRIX)

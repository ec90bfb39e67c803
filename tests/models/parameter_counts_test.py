"""Numbers of meta and fast parameters, against the published ones."""

import types

import jax
import numpy as np
import pytest

from modular_hyperteacher.configs import fig4c
from modular_hyperteacher.configs import fig4e
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.models import base
from tests.helpers import built
from tests.helpers import small_models

# Spec 8.4, noted in the released configurations.
_HYPERTEACHER_COUNTS = [
    # M, model, meta, fast.
    (4, 'linear_hypernetwork', 315584, 72),
    (6, 'linear_hypernetwork', 473376, 104),
    (8, 'linear_hypernetwork', 631168, 136),
    (16, 'linear_hypernetwork', 1262336, 264),
    (4, 'nonlinear_hypernetwork', 643104, 64),
    (6, 'nonlinear_hypernetwork', 643952, 96),
    (8, 'nonlinear_hypernetwork', 644800, 128),
    (16, 'nonlinear_hypernetwork', 648192, 256),
    (4, 'anil', 538120, 4104),
    (16, 'anil', 538120, 4104),
    (4, 'maml', 305288, 305288),
    (16, 'maml', 305288, 305288),
]
_GRIDWORLD_COUNTS = [
    # Config, model, meta, fast.
    (fig4c, 'linear_hypernetwork', 1149216, 133),
    (fig4c, 'nonlinear_hypernetwork', 1162816, 96),
    (fig4c, 'anil', 1041925, 2565),
    (fig4c, 'maml', 454117, 454117),
    (fig4e, 'linear_hypernetwork', 227144, 30),
    (fig4e, 'nonlinear_hypernetwork', 919688, 24),
    (fig4e, 'anil', 699910, 3078),
    (fig4e, 'maml', 475782, 475782),
]


def _counts(run: sweeps.Run) -> tuple[int, int]:
  """Returns the counts of a model built as a run builds it."""
  return base.count_params(built.bilevel_experiment(run.config).model)


@pytest.mark.parametrize('num_modules, name, meta, fast', _HYPERTEACHER_COUNTS)
def test_published_counts_on_the_hyperteacher(
    num_modules: int, name: str, meta: int, fast: int
) -> None:
  blocks = hyperteacher.blocks('paper', num_modules=num_modules)
  grid = dict(model=[name])
  (run,) = sweeps.expand(experiment.make('test', 'paper', grid, **blocks))
  assert _counts(run) == (meta, fast)


@pytest.mark.parametrize('figure, name, meta, fast', _GRIDWORLD_COUNTS)
def test_published_counts_on_grid_worlds(
    figure: types.ModuleType, name: str, meta: int, fast: int
) -> None:
  runs = sweeps.expand(figure.get_config('paper'))
  run, *_ = sweeps.select(runs, [f'model={name}', 'task_support=random'])
  assert _counts(run) == (meta, fast)


def test_count_params_counts_what_init_returns() -> None:
  for name in small_models.NAMES:
    model = small_models.make(name)
    meta_params = small_models.init(name)
    fast_params = model.init_fast(meta_params)
    expected = tuple(
        sum(np.size(leaf) for leaf in jax.tree.leaves(tree))
        for tree in (meta_params, fast_params)
    )
    assert base.count_params(model) == expected


@pytest.mark.parametrize('name', small_models.NAMES)
def test_one_hidden_layer(name: str) -> None:
  """There is no block of hidden layers then."""
  model = small_models.make(name, 1)
  params = small_models.compiled_init(name, 1)(jax.random.key(0))
  outputs = small_models.network(name, 1)(
      params, model.init_fast(params), small_models.inputs()
  )
  assert outputs.shape == (6, small_models.Y)
  assert np.isfinite(outputs).all()
  mlp_size = (small_models.X + 1) * small_models.H + (
      small_models.H + 1
  ) * small_models.Y
  generator = 2 * 7 + 2 * 6 + 7 * 7 + 7 * 6 + 2 * (7 + 7)  # Two hidden layers.
  expected = {
      'anil': (mlp_size, (small_models.H + 1) * small_models.Y),
      'maml': (mlp_size, mlp_size),
      'linear_hypernetwork': (
          small_models.MODULES * (mlp_size + 2),
          2 * small_models.MODULES + small_models.Y,
      ),
      'nonlinear_hypernetwork': (
          7 * mlp_size + 2 * generator + 2 * small_models.MODULES,
          2 * small_models.MODULES,
      ),
  }
  assert base.count_params(model) == expected[name]
  if name in small_models.HYPERNETWORKS:
    assert params['embeddings'].keys() == {'input', 'output'}

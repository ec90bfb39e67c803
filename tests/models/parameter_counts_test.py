"""Numbers of meta and fast parameters, against the published ones."""

import jax
import numpy as np
import pytest

from configs import fig4c
from configs import fig4e
from configs.blocks import experiment
from configs.blocks import hyperteacher
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.models import base
from modular_hyperteacher.models import linear_hypernetwork
from modular_hyperteacher.models import nonlinear_hypernetwork
from tests.helpers import built
from tests.helpers import small_models

# Parameter counts, spec 8.4 (noted in the released configurations).


_MLP_COUNTS = [
    # World, model, X, Y, hidden layers, width, meta, fast.
    ('hyperteacher', 'anil', 16, 8, 3, 512, 538120, 4104),
    ('hyperteacher', 'maml', 16, 8, 3, 384, 305288, 305288),
    ('preferences', 'anil', 490, 5, 4, 512, 1041925, 2565),
    ('preferences', 'maml', 490, 5, 3, 368, 454117, 454117),
    ('goals', 'anil', 847, 6, 2, 512, 699910, 3078),
    ('goals', 'maml', 847, 6, 2, 384, 475782, 475782),
]

_HYPERNETWORK_COUNTS = [
    # World, model, X, Y, hidden layers, width, M-hat, meta, fast.
    ('hyperteacher', 'linear', 16, 8, 3, 128, 4 * 4, 315584, 72),
    ('hyperteacher', 'linear', 16, 8, 3, 128, 4 * 6, 473376, 104),
    ('hyperteacher', 'linear', 16, 8, 3, 128, 4 * 8, 631168, 136),
    ('hyperteacher', 'linear', 16, 8, 3, 128, 4 * 16, 1262336, 264),
    ('hyperteacher', 'nonlinear', 16, 8, 3, 128, 4 * 4, 643104, 64),
    ('hyperteacher', 'nonlinear', 16, 8, 3, 128, 4 * 6, 643952, 96),
    ('hyperteacher', 'nonlinear', 16, 8, 3, 128, 4 * 8, 644800, 128),
    ('hyperteacher', 'nonlinear', 16, 8, 3, 128, 4 * 16, 648192, 256),
    ('preferences', 'linear', 490, 5, 3, 64, 32, 1149216, 133),
    ('preferences', 'nonlinear', 490, 5, 2, 64, 32, 1162816, 96),
    ('goals', 'linear', 847, 6, 2, 32, 8, 227144, 30),
    ('goals', 'nonlinear', 847, 6, 2, 32, 8, 919688, 24),
]


@pytest.mark.parametrize(
    'world, name, input_dim, output_dim, num_hidden, hidden_dim, meta, fast',
    _MLP_COUNTS,
)
def test_published_counts_of_anil_and_maml(
    world: str,
    name: str,
    input_dim: int,
    output_dim: int,
    num_hidden: int,
    hidden_dim: int,
    meta: int,
    fast: int,
) -> None:
  model = small_models.MLPS[name].make(
      input_dim=input_dim,
      output_dim=output_dim,
      num_hidden=num_hidden,
      hidden_dim=hidden_dim,
  )
  assert base.count_params(model) == (meta, fast), world


@pytest.mark.parametrize(
    'world, name, input_dim, output_dim, num_hidden, hidden_dim, num_modules,'
    ' meta, fast',
    _HYPERNETWORK_COUNTS,
)
def test_published_counts_of_hypernetworks(
    world: str,
    name: str,
    input_dim: int,
    output_dim: int,
    num_hidden: int,
    hidden_dim: int,
    num_modules: int,
    meta: int,
    fast: int,
) -> None:
  sizes = dict(
      input_dim=input_dim,
      output_dim=output_dim,
      num_hidden=num_hidden,
      hidden_dim=hidden_dim,
      num_modules=num_modules,
  )
  if name == 'linear':
    model = linear_hypernetwork.make(**sizes)
  else:
    model = nonlinear_hypernetwork.make(
        generator_num_hidden=4, generator_hidden_dim=32, **sizes
    )
  assert base.count_params(model) == (meta, fast), world


@pytest.mark.parametrize(
    'num_modules, name, meta, fast',
    [
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
    ],
)
def test_published_counts_of_the_hyperteacher_config(
    num_modules: int, name: str, meta: int, fast: int
) -> None:
  """The config's blocks, built as a run builds them."""
  blocks = hyperteacher.blocks('paper', num_modules=num_modules)
  grid = sweeps.grid(model=[name])
  config = experiment.make('test', 'paper', grid, **blocks)
  (run,) = sweeps.expand(config)
  model = built.bilevel_experiment(run.config).model
  assert base.count_params(model) == (meta, fast)


@pytest.mark.parametrize(
    'world, name, meta, fast',
    [
        ('preferences', 'linear_hypernetwork', 1149216, 133),
        ('preferences', 'nonlinear_hypernetwork', 1162816, 96),
        ('preferences', 'anil', 1041925, 2565),
        ('preferences', 'maml', 454117, 454117),
        ('goals', 'linear_hypernetwork', 227144, 30),
        ('goals', 'nonlinear_hypernetwork', 919688, 24),
        ('goals', 'anil', 699910, 3078),
        ('goals', 'maml', 475782, 475782),
    ],
)
def test_published_counts_of_the_grid_worlds_configs(
    world: str, name: str, meta: int, fast: int
) -> None:
  """The configs' blocks, built as a run builds them."""
  figure = {'preferences': fig4c, 'goals': fig4e}[world]
  runs = sweeps.expand(figure.get_config('paper'))
  run, *_ = sweeps.select(runs, [f'model={name}', 'task_support=random'])
  model = built.bilevel_experiment(run.config).model
  assert base.count_params(model) == (meta, fast)


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

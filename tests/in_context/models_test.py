"""The in-context learners: sizes, what they see, what they can express."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import in_context as config
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.in_context import learner
from modular_hyperteacher.in_context import models
from modular_hyperteacher.in_context import transformer
from modular_hyperteacher.tasks import base as tasks

_X, _S = 4, 7
_BODY = transformer.TransformerConfig(8, 2, 2, None, 16, 'softmax', 0.0)
_MODELS = {
    'transformer': models.make_transformer(
        input_dim=_X, output_dim=1, num_support=_S, body=_BODY
    ),
    'hypernetwork_transformer': models.make_hypernetwork_transformer(
        input_dim=_X,
        output_dim=1,
        num_support=_S,
        body=_BODY,
        num_modules=3,
        task_hidden_dim=5,
    ),
}


def _context(seed: int = 0) -> tuple[tasks.Batch, jax.Array]:
  rng = np.random.default_rng(seed)
  support = tasks.examples(
      jnp.asarray(rng.standard_normal((_S, _X)), jnp.float32),
      jnp.asarray(rng.standard_normal((_S, 1)), jnp.float32),
  )
  return support, jnp.asarray(rng.standard_normal((2, _X)), jnp.float32)


def test_parameter_counts_of_the_paper() -> None:
  """With 64 tokens: Section 3 of the paper's follow-up, counted by hand."""
  counts = {}
  for run in sweeps.expand(config.get_config('paper')):
    experiment = build.build(run.config, 1)
    counts[run.config['model']['name']] = experiment.system.num_params
  assert counts == {
      'transformer': (399_745, 0),
      'hypernetwork_transformer': (105_254, 0),
  }


@pytest.mark.parametrize('name', _MODELS)
def test_queries_do_not_see_each_other(name: str) -> None:
  model, (support, inputs) = _MODELS[name], _context()
  params = model.init(jax.random.key(0))
  both = model.apply(params, None, support, inputs, False).outputs
  one = model.apply(params, None, support, inputs[1:], False).outputs
  np.testing.assert_allclose(both[1:], one, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('name', _MODELS)
def test_order_of_the_context_matters_by_position_biases_alone(
    name: str,
) -> None:
  model, (support, inputs) = _MODELS[name], _context()
  params = model.init(jax.random.key(0))
  order = jnp.asarray([3, 0, 6, 1, 5, 2, 4])
  shuffled = jax.tree.map(lambda x: x[order], support)

  def difference(params: Any) -> float:
    outputs = [
        model.apply(params, None, context, inputs, False).outputs
        for context in (support, shuffled)
    ]
    return float(jnp.abs(outputs[0] - outputs[1]).max())

  assert difference(params) > 1e-4
  without = {
      module: {
          leaf: jnp.zeros_like(x) if leaf == 'position_bias' else x
          for leaf, x in leaves.items()
      }
      for module, leaves in params.items()
  }
  assert difference(without) < 1e-5


def test_the_generated_network_can_be_the_teacher() -> None:
  """Modules padded with silent units; the code is z over the norm of W(z)."""
  rng = np.random.default_rng(0)
  modules = rng.standard_normal((6, 16, 16))
  readout = rng.standard_normal((16, 1))
  inputs = rng.standard_normal((50, 16))
  student_modules = np.concatenate([modules, np.zeros((6, 16, 16))], -1)
  student_readout = np.concatenate([readout, np.zeros((16, 1))])
  for pair in itertools.combinations(range(6), 2):
    latent = np.zeros(6)
    latent[list(pair)] = 0.6, 0.9
    mixed = np.tensordot(latent, modules, 1)
    norm = np.linalg.svd(mixed, compute_uv=False)[0]
    expected = np.asarray(jax.nn.gelu(inputs @ (mixed / norm))) @ readout
    found = models.run_task_network(
        jnp.asarray(latent / norm * 4),  # sqrt(X) = 4 is divided by again.
        jnp.asarray(student_modules),
        jnp.asarray(student_readout),
        jnp.asarray(inputs),
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_split_units_solve_the_triangles_without_composing() -> None:
  """Each triangle has units of its own: exact on it, wrong across."""
  rng = np.random.default_rng(0)
  modules = rng.standard_normal((6, 16, 16))
  readout = rng.standard_normal((16, 1)) / 4
  split = np.zeros((6, 16, 32))
  split[:3, :, :16] = modules[:3]
  split[3:, :, 16:] = modules[3:]
  inputs = rng.uniform(-np.sqrt(3), np.sqrt(3), (500, 16))

  def error(pair: tuple[int, int]) -> float:
    latent = np.zeros(6)
    latent[list(pair)] = 0.75
    mixed = np.tensordot(latent, modules, 1)
    norm = np.linalg.svd(mixed, compute_uv=False)[0]
    target = np.asarray(jax.nn.gelu(inputs @ (mixed / norm))) @ readout
    outputs = models.run_task_network(
        jnp.asarray(latent / norm * 4),
        jnp.asarray(split),
        jnp.asarray(np.concatenate([readout, readout])),
        jnp.asarray(inputs),
    )
    return float(np.mean((outputs - target) ** 2) / np.var(target))

  for pair in ((0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)):
    assert error(pair) < 1e-8
  assert min(error((i, j)) for i in range(3) for j in range(3, 6)) > 0.01


def test_the_schedule() -> None:
  """Linear warm-up, then a cosine to a tenth; it ends a warm-up early."""
  outer = learner.OuterConfig(
      learning_rate=1e-3,
      warmup_fraction=0.1,
      final_fraction=0.1,
      weight_decay=0.1,
      clip_norm=1.0,
      meta_batch_size=8,
      num_outer_steps=1000,
  )
  rate = learner.learning_rate(outer)
  steps = [0, 50, 100, 500, 900, 1000]
  found = [np.asarray(rate(step)) for step in steps]
  # At 500, half of the way from 100 to 900.
  expected = [0, 5e-4, 1e-3, 5.5e-4, 1e-4, 1e-4]
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_weight_decay_spares_vectors() -> None:
  params = _MODELS['hypernetwork_transformer'].init(jax.random.key(0))
  decayed = learner.decays(params)
  spared = {
      f'{module}/{leaf}'
      for module, leaves in decayed.items()
      for leaf, is_decayed in leaves.items()
      if not is_decayed
  }
  assert all(name.endswith(('/b', '/scale', '/offset')) for name in spared)
  assert decayed['~']['modules'] and decayed['~']['readout']

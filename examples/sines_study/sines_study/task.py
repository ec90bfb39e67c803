"""Sums of two of four sines; pairs of neighbours are trained on."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import objectives
from modular_hyperteacher.untrusted import rules

Params = dict[str, jax.Array]

# NumPy arrays, because JAX is not configured yet when this is imported.
_SEEN = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]])
_UNSEEN = np.array([[1, 0, 1, 0], [0, 1, 0, 1]])


@rules.enforce('task')
def make(*, num_examples: rules.Count) -> base.TaskDistribution:
  """Returns the distribution; every set of a task has `num_examples`."""
  return base.TaskDistribution(
      input_dim=1,
      output_dim=1,
      num_modules=4,
      objective=objectives.REGRESSION,
      evaluation_splits=('valid', 'test', 'ood'),
      init=_init,
      sample_latent=_sample_latent,
      sample_examples=functools.partial(_sample_examples, num_examples),
      num_combinations=lambda params, split: len(_combinations(split)),
  )


def _combinations(split: str) -> np.ndarray:
  return _UNSEEN if split == 'ood' else _SEEN


def _init(key: jax.Array) -> Params:
  return {'frequencies': jax.random.uniform(key, (4,), minval=1, maxval=5)}


def _sample_latent(params: Params, key: jax.Array, split: str) -> jax.Array:
  del params
  return jax.random.choice(key, _combinations(split))[None].astype(float)


def _sample_examples(
    num_examples: int,
    params: Params,
    key: jax.Array,
    latent: jax.Array,
    split: str,
) -> tuple[base.Batch, base.Batch]:
  del split
  x = jax.random.uniform(key, (2, num_examples, 1), minval=-1.0)
  y = jnp.sin(x * params['frequencies']) @ latent[0]
  support, query = (base.examples(x[i], y[i][:, None]) for i in range(2))
  return support, query

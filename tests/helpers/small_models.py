"""Small models of every kind, with parameters; shared by tests of models."""

from collections.abc import Callable
import functools
from typing import Any

import jax
import numpy as np

from modular_hyperteacher.experiments import components
from modular_hyperteacher.models import anil
from modular_hyperteacher.models import base
from modular_hyperteacher.models import maml

X, H, Y, MODULES = 4, 5, 3, 6
GENERATOR = {'generator_num_hidden': 2, 'generator_hidden_dim': 7}
HYPERNETWORKS = ('linear_hypernetwork', 'nonlinear_hypernetwork')
NAMES = ('anil', 'maml') + HYPERNETWORKS
MLPS = {'anil': anil, 'maml': maml}


@functools.lru_cache
def make(name: str, num_hidden: int = 3) -> base.MetaModel:
  sizes: dict[str, int] = dict(
      input_dim=X, output_dim=Y, num_hidden=num_hidden, hidden_dim=H
  )
  if name == 'modular_student':
    sizes = dict(input_dim=X, output_dim=Y, hidden_dim=H, num_modules=MODULES)
  if name in HYPERNETWORKS:
    sizes['num_modules'] = MODULES
  if name == 'nonlinear_hypernetwork':
    sizes |= GENERATOR
  return components.MODELS[name](**sizes)


@functools.lru_cache
def compiled_init(name: str, num_hidden: int = 3) -> Callable[[jax.Array], Any]:
  return jax.jit(make(name, num_hidden).init)


@functools.lru_cache
def init(name: str, num_hidden: int = 3) -> Any:
  """Returns parameters, all of them moved off their special values."""
  return moved(compiled_init(name, num_hidden)(jax.random.key(0)))


def moved(params: Any) -> Any:
  """Returns parameters with noise, so that none is at a special value."""
  rng = np.random.default_rng(2)  # Each shape would cost JAX a program.
  return jax.tree.map(
      lambda x: x + rng.normal(0, 0.3, x.shape).astype(x.dtype), params
  )


def inputs(num_examples: int = 6) -> jax.Array:
  return jax.random.uniform(jax.random.key(2), (num_examples, X), minval=-1.0)


@functools.lru_cache
def network(
    name: str, num_hidden: int = 3
) -> Callable[[Any, Any, Any], jax.Array]:
  """Returns encode and decode as one function."""
  model = make(name, num_hidden)
  return jax.jit(
      lambda meta, fast, x: model.decode(meta, fast, model.encode(meta, x))
  )


def double(tree: Any) -> Any:
  return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


def normalise(embedding: np.ndarray) -> np.ndarray:
  """Returns an embedding of mean square one, as generators see it."""
  return embedding / np.sqrt((embedding**2).mean(-1, keepdims=True))

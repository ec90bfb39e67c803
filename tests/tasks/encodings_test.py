"""Codes of tasks: what they are, and that no two tasks share one."""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import encodings
from tests.helpers import tiny

_LEVELS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_SUPPORT = base.examples(jnp.arange(6.0).reshape(3, 2), -jnp.ones((3, 1)))
_DIMS = {'tokens': 10, 'fewshot': 9}


def _latents() -> np.ndarray:
  """Returns all latents of five entries with up to two active."""
  rows = itertools.product(_LEVELS, repeat=5)
  return np.array([r for r in rows if 0 < np.count_nonzero(r) <= 2], np.float32)


def _encode(name: str, latents: Any, seed: int = 0) -> np.ndarray:
  encoding = encodings.ENCODINGS[name]
  params = encoding.init(jax.random.key(seed), np.shape(latents)[-1])
  return np.asarray(
      jax.vmap(lambda z: encoding.encode(params, z, _SUPPORT))(
          jnp.asarray(latents)
      )
  )


@pytest.mark.parametrize(
    'name', [n for n in encodings.ENCODINGS if n != 'fewshot']
)
def test_codes_are_injective(name: str) -> None:
  latents = _latents()
  codes = _encode(name, latents)
  assert codes.shape == (len(latents), _DIMS.get(name, 5))
  distances = np.abs(codes[:, None] - codes[None]).max(-1)
  distances[np.diag_indices(len(codes))] = 1
  assert distances.min() > 0.01


def test_tokens() -> None:
  (code,) = _encode('tokens', [[0.5, 0.0]])
  assert code.tolist() == [1, 8, 2, 3]
  every = _encode('tokens', [_LEVELS])[0]
  assert every[1::2].tolist() == [8, 13, 14, 15, 16, 17, 18]
  (between,) = _encode('tokens', [[0.57, 0.96]])
  assert between[1::2].tolist() == [8, 12]


def test_orthogonal_keeps_distances() -> None:
  latents = _latents()
  codes = _encode('orthogonal', latents)
  np.testing.assert_allclose(codes @ codes.T, latents @ latents.T, atol=1e-5)
  assert np.abs(codes - latents).max() > 0.1


def test_intervals_are_permuted() -> None:
  order = jnp.array([3, 1, 2, 0, 4, 9, 6, 7, 8, 5])
  shuffled = encodings.shuffle_intervals(
      order, jnp.array([0.0, 0.05, 0.5, 0.6, 0.99, 1.0])
  )
  expected = [0.3, 0.35, 0.9, 0.6, 0.59, 1.0]
  np.testing.assert_allclose(shuffled, expected, atol=1e-6)


@pytest.mark.parametrize('num_modules', [5, 6])
def test_couplings_can_be_inverted(num_modules: int) -> None:
  """Undoes layer after layer, in NumPy and float64."""
  couplings = encodings.draw_couplings(jax.random.key(3), num_modules)
  latent = np.linspace(0, 1, num_modules)
  code = np.asarray(encodings.couple(couplings, jnp.asarray(latent)), float)
  sizes = {matrix.shape for matrix in couplings[0]}
  assert (2 * num_modules, 2 * num_modules) in sizes

  def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))

  half = num_modules // 2
  for index, matrices in reversed(list(enumerate(couplings))):
    code = code[::-1] if index == 1 else code
    first, second, last = (np.asarray(m, float) for m in matrices)
    hidden = sigmoid(sigmoid(code[:half] @ first) @ second) @ last
    scale, shift = np.split(hidden, 2)
    rest = (code[half:] - shift) / (1 + 0.5 * np.tanh(scale))
    code = np.concatenate([code[:half], rest])
    code = code[::-1] if index == 1 else code
  np.testing.assert_allclose(code, latent, atol=1e-5)


def test_fewshot_lists_inputs_then_targets() -> None:
  (code,) = _encode('fewshot', [[0.5, 0.0]])
  assert code.tolist() == [0, 1, 2, 3, 4, 5, -1, -1, -1]


def test_given_tasks_are_the_same_tasks() -> None:
  """The hyperteacher's, with the mask in front; nothing else changes."""
  inferred, given = tiny.task(), tiny.task(encoding='identity')
  assert (inferred.code_dim, given.code_dim) == (0, 3)
  assert given.input_dim == inferred.input_dim + 3
  key, example_key = jax.random.split(jax.random.key(5))
  params, given_params = inferred.init(key), given.init(key)
  latent = given.sample_latent(given_params, key, 'ood')
  np.testing.assert_array_equal(
      latent, inferred.sample_latent(params, key, 'ood')
  )
  plain = inferred.sample_examples(params, example_key, latent, 'ood')
  coded = given.sample_examples(given_params, example_key, latent, 'ood')
  for without, with_code in zip(plain, coded, strict=True):
    np.testing.assert_array_equal(with_code.targets, without.targets)
    np.testing.assert_array_equal(with_code.inputs[:, 3:], without.inputs)
    repeated = np.repeat(latent, len(without.targets), 0)
    np.testing.assert_array_equal(with_code.inputs[:, :3], repeated)
  for split in ('train', 'ood'):
    assert given.num_combinations(given_params, split) == (
        inferred.num_combinations(params, split)
    )


def test_unknown_codes_are_refused() -> None:
  with pytest.raises(errors.UserError, match='task.encoding'):
    tiny.task(encoding='morse')

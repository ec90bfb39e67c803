"""The transformer that is given the task, against NumPy."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.models import base
from modular_hyperteacher.studies.given_tasks import layers
from modular_hyperteacher.studies.given_tasks import multitask_transformer
from tests.helpers import small_hyperteacher
from tests.helpers import small_models

_CODE, _X, _Y, _E, _HEADS, _BLOCKS = 3, 4, 2, 8, 2, 2


def _make(**fields: Any) -> base.MetaModel:
  usual = {
      'input_dim': _CODE + _X,
      'output_dim': _Y,
      'example_dim': _X,
      'embedding_dim': _E,
      'num_layers': _BLOCKS,
      'num_heads': _HEADS,
      'feedforward_dim': 16,
  }
  return multitask_transformer.make(**usual | fields)


def _draw_params(model: base.MetaModel) -> Any:
  """Returns parameters of which none is at a value that hides it."""
  return small_models.moved(jax.jit(model.init)(jax.random.key(0)))


def _draw_rows(key: int, num_rows: int = 5) -> jax.Array:
  """Returns a task's examples, each with the same code before it."""
  code_key, key_of_rows = jax.random.split(jax.random.key(key))
  code = jax.random.normal(code_key, (1, _CODE))
  rows = jax.random.normal(key_of_rows, (num_rows, _X))
  return jnp.concatenate([jnp.repeat(code, num_rows, 0), rows], 1)


@functools.partial(jax.jit, static_argnums=0)
def _run(model: base.MetaModel, params: Any, rows: jax.Array) -> jax.Array:
  return model.decode(params, {}, model.encode(params, rows))


def _norm(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
  return (x - x.mean()) / np.sqrt(x.var() + 1e-6) * scale


def _turn(x: np.ndarray, place: int) -> np.ndarray:
  """Rotary positions as products of complex numbers."""
  half = len(x) // 2
  angles = place * 10_000.0 ** (-np.arange(half) / half)
  turned = (x[:half] + 1j * x[half:]) * np.exp(1j * angles)
  return np.concatenate([turned.real, turned.imag])


def _gelu(x: np.ndarray) -> np.ndarray:
  inner = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
  return 0.5 * x * (1 + np.tanh(inner))


def _attend(tokens: list[np.ndarray], get: Any) -> list[np.ndarray]:
  """Attention, token by token and head by head."""
  size = _E // _HEADS
  outputs = []
  for place in range(len(tokens)):
    read = []
    for head in range(_HEADS):
      own = slice(head * size, (head + 1) * size)

      def project(part: str, at: int, own: slice = own) -> np.ndarray:
        x = (tokens[at] @ get(f'{part}', 'w'))[own]
        if part == 'value':
          return x
        return _turn(_norm(x, get(f'{part}_norm', 'scale')), at)

      query = project('query', place)
      scores = np.array([
          query @ project('key', other) / np.sqrt(size)
          for other in range(place + 1)  # Later tokens are not seen.
      ])
      weights = np.exp(scores) / np.exp(scores).sum()
      read.append(
          sum(w * project('value', other) for other, w in enumerate(weights))
      )
    outputs.append(np.concatenate(read) @ get('attended', 'w'))
  return outputs


def test_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
  model = _make()
  params = _draw_params(model)
  rows = _draw_rows(2)
  p = jax.tree.map(np.asarray, params)
  tokens = [np.asarray(rows[0, :_CODE]) @ p['code']['w']]
  for row in np.asarray(rows):
    tokens.append(row[_CODE:] @ p['examples']['w'] + p['examples']['b'])
  streams = []
  for i in range(_BLOCKS):
    block = lambda name, entry, i=i: p[f'block_{i}_{name}'][entry]
    scale = block('attention_norm', 'scale')
    read = _attend([_norm(t, scale) for t in tokens], block)
    tokens = [t + r for t, r in zip(tokens, read)]
    scale = block('feedforward_norm', 'scale')
    tokens = [
        t + _gelu(_norm(t, scale) @ block('in', 'w')) @ block('out', 'w')
        for t in tokens
    ]
    streams.append(np.stack(tokens[1:]))
  final = [_norm(t, p['final_norm']['scale']) for t in tokens[1:]]
  outputs = np.stack(final) @ p['readout']['w'] + p['readout']['b']
  np.testing.assert_allclose(_run(model, params, rows), outputs, rtol=1e-4)
  # What an analysis of the layers is given.
  monkeypatch.setattr(layers, 'make_analysis', lambda task, apply: apply)
  assert model.make_decoding is not None
  apply: Any = model.make_decoding(small_hyperteacher.make())
  for ours, expected in zip(
      apply(params, rows), [*streams, outputs], strict=True
  ):
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def test_number_of_parameters() -> None:
  """As published: 16 modules and inputs, 4 blocks of width 256, 4 heads."""
  model = _make(
      input_dim=32,
      output_dim=16,
      example_dim=16,
      embedding_dim=256,
      num_layers=4,
      num_heads=4,
      feedforward_dim=1024,
  )
  norms = 2 * 256 + 2 * 64  # Tokens; queries and keys of a head.
  block = 4 * 256 * 256 + 2 * 256 * 1024 + norms
  ends = 16 * 256 + (16 * 256 + 256) + 256 + (256 * 16 + 16)
  assert base.count_params(model) == (4 * block + ends, 0)


def test_tasks_do_not_see_one_another() -> None:
  """A task's outputs are the same alone and in a batch of any size."""
  model = _make()
  params = _draw_params(model)
  batch = jnp.stack([_draw_rows(key) for key in range(6)])
  of_batch = jax.vmap(lambda rows: _run(model, params, rows))
  for size in (1, 2, 6):
    np.testing.assert_allclose(
        of_batch(batch[:size])[0], _run(model, params, batch[0]), rtol=1e-5
    )


def test_later_examples_do_not_matter() -> None:
  model = _make()
  params = _draw_params(model)
  rows = _draw_rows(3)
  outputs = _run(model, params, rows)
  np.testing.assert_allclose(
      _run(model, params, rows[:3]), outputs[:3], rtol=1e-5
  )
  changed = _run(model, params, rows.at[1, _CODE:].add(1.0))
  np.testing.assert_allclose(changed[0], outputs[0], rtol=1e-5)
  assert (np.abs(changed[1:] - outputs[1:]) > 1e-4).any(1).all()


def test_rotated_products_depend_on_distance() -> None:
  tokens = jax.random.normal(jax.random.key(0), (2, 1, 1, 6))
  same = jnp.repeat(tokens, 12, axis=1)
  queries, keys = (multitask_transformer.rotate(x)[:, 0] for x in same)
  products = np.asarray(queries @ keys.T)
  for distance in range(-3, 4):
    diagonal = np.diagonal(products, distance)
    np.testing.assert_allclose(diagonal, diagonal[0], rtol=1e-4)
  assert len(np.unique(products[0].round(4))) == 12


def test_initial_weights_have_unit_gain() -> None:
  """Xavier in blocks; 1/fan_in outside of them."""
  model = _make(
      input_dim=500,
      output_dim=300,
      example_dim=200,
      embedding_dim=200,
      feedforward_dim=600,
  )
  params = model.init(jax.random.key(0))
  for name, variance in (
      ('code', 1 / 300),
      ('examples', 1 / 200),
      ('block_1_query', 2 / 400),
      ('block_1_in', 2 / 800),
      ('readout', 1 / 200),
  ):
    assert float(params[name]['w'].std()) == pytest.approx(
        variance**0.5, rel=0.02
    )


@pytest.mark.parametrize(
    'fields, message',
    [
        ({'embedding_dim': 10}, 'model.embedding_dim is 10; .* the 2 heads'),
        ({'example_dim': 7}, 'model.example_dim is 7; it must be below 7'),
        ({'num_layers': 0}, 'model.num_layers is 0'),
    ],
)
def test_impossible_sizes_are_refused(
    fields: dict[str, int], message: str
) -> None:
  with pytest.raises(errors.UserError, match=message):
    _make(**fields)

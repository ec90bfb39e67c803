"""The network, against loops over single rows in NumPy."""

from collections.abc import Callable, Iterable
import functools
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.models import base
from modular_hyperteacher.studies.meta_seq2seq import layers
from modular_hyperteacher.studies.meta_seq2seq import learner
from modular_hyperteacher.studies.meta_seq2seq import model as models
from modular_hyperteacher.studies.meta_seq2seq import vocabulary
from tests.helpers import greedy
from tests.helpers import slow

_INPUTS = vocabulary.Vocabulary(('a', 'b', 'c'))

_OUTPUTS = vocabulary.Vocabulary(('A', 'B', 'C', 'D'))

_CONFIG: dict[str, Any] = dict(
    input_vocab=_INPUTS,
    output_vocab=_OUTPUTS,
    hidden_dim=5,
    num_layers=2,
    dropout_rate=0.5,
    mask_padding=True,
)

_FULL = functools.partial(
    models.MetaSeq2Seq, **_CONFIG, use_decoder_attention=True
)

_VARIANTS: dict[str, Callable[..., models.ModelConfig]] = {
    'full': _FULL,
    'padded': functools.partial(_FULL, mask_padding=False),
    'no_attention': functools.partial(_FULL, use_decoder_attention=False),
    'standard': functools.partial(models.Seq2Seq, **_CONFIG),
}

_SUPPORT = ['ab', 'c', 'bca'], ['AB', 'C', 'DCA']

_QUERY = ['a', 'cab', 'bb', 'abc'], ['A', 'CABBA', '', 'DD']


def pairs(rows: Any, inputs: int = 5, outputs: int = 7) -> vocabulary.Pairs:
  """Returns rows as sequences with room for so many tokens."""
  encoded = vocabulary.Pairs(
      _INPUTS.encode(rows[0], inputs), _OUTPUTS.encode(rows[1], outputs)
  )
  return jax.tree.map(jnp.asarray, encoded)


@functools.cache
def make(name: str) -> tuple[models.Model, Any]:
  network = models.make(_VARIANTS[name]())
  return network, jax.jit(network.init)(jax.random.key(0))


def plain(params: Any) -> dict[str, Any]:
  """Returns NumPy arrays by the names of modules, without Haiku's '~'."""
  params = {name.replace('/~', ''): leaf for name, leaf in params.items()}
  return jax.tree.map(np.asarray, params)


@functools.cache
def _jitted(apply_: Callable[..., Any]) -> Callable[..., Any]:
  return jax.jit(lambda *args: apply_(*args, False))


def apply(
    network: models.Model,
    params: Any,
    support: vocabulary.Pairs | None,
    query: vocabulary.Pairs,
) -> Any:
  return _jitted(network.apply)(params, None, support, query)


# NumPy twins.


def _sigmoid(x: np.ndarray) -> np.ndarray:
  return 1 / (1 + np.exp(-x))


def _run_lstm(
    params: Any,
    name: str,
    inputs: np.ndarray,
    h: np.ndarray | None = None,
    c: np.ndarray | None = None,
) -> np.ndarray:
  """Returns h of every step of one row; inputs [T, X]."""
  p = params[name]
  size = p['w_h'].shape[0]
  h = np.zeros(size) if h is None else h
  c = np.zeros(size) if c is None else c
  found = []
  for x in inputs:
    i, f, o, g = np.split(x @ p['w_x'] + p['b'] + h @ p['w_h'], 4)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    h = _sigmoid(o) * np.tanh(c)
    found.append(h)
  return np.array(found)


def _encode(
    params: Any, name: str, tokens: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  hidden = params[f'{name}/embedding']['table'][tokens]
  forth = back = hidden
  for layer in range(2):
    forth = _run_lstm(params, f'{name}/layer_{layer}_forth', hidden)
    back = _run_lstm(params, f'{name}/layer_{layer}_back', hidden[::-1])[::-1]
    hidden = np.concatenate([forth, back], 1)
  return forth + back, forth[-1] + back[0]


def _softmax(x: np.ndarray) -> np.ndarray:
  e = np.exp(x - x.max(-1, keepdims=True))
  return e / e.sum(-1, keepdims=True)


def _tokens(sequences: vocabulary.Sequences, row: int) -> np.ndarray:
  return np.asarray(sequences.tokens[row][: int(sequences.lengths[row])])


def _linear(params: Any, name: str, x: np.ndarray) -> np.ndarray:
  return x @ params[name]['w'] + params[name]['b']


def reference(
    params: Any,
    config: models.ModelConfig,
    support: vocabulary.Pairs,
    query: vocabulary.Pairs,
    row: int,
) -> np.ndarray:
  """Returns the logits of one row: steps by hand, padding as in the release."""
  params = plain(params)
  scale = np.sqrt(config.hidden_dim)
  reader, writer = 'encoder/input_encoder', 'encoder/output_encoder'
  steps, start = _encode(params, reader, _tokens(query.inputs, row))
  length, width = len(steps), query.inputs.tokens.shape[1]
  padding = np.zeros((width - length, config.hidden_dim))
  steps = np.concatenate([steps, padding])
  if config.use_memory:
    items = range(len(support.inputs.lengths))
    keys, values = (
        [_encode(params, name, _tokens(side, i))[1] for i in items]
        for name, side in ((reader, support.inputs), (writer, support.outputs))
    )
    attention = _softmax(steps @ np.array(keys).T / scale)
    both = np.concatenate([steps, attention @ np.array(values)], 1)
    steps = np.tanh(_linear(params, 'encoder/combine', both))
    start = steps[length - 1]
  if config.mask_padding:
    steps = steps[:length]
  targets = _tokens(query.outputs, row)
  symbols = np.concatenate([[_OUTPUTS.sos], targets[:-1]])
  hidden = params['decoder/embedding']['table'][symbols]
  for layer in range(2):
    hidden = _run_lstm(params, f'decoder/layer_{layer}', hidden, start, start)
  if config.use_decoder_attention:
    found = _softmax(hidden @ steps.T / scale) @ steps
    both = np.concatenate([hidden, found], 1)
    hidden = np.tanh(_linear(params, 'decoder/combine', both))
  return _linear(params, 'decoder/readout', hidden)


@pytest.mark.parametrize(
    'name', slow.mark(_VARIANTS, ('no_attention', 'padded'))
)
def test_logits_are_those_of_single_rows_by_hand(name: str) -> None:
  network, params = make(name)
  support, query = pairs(_SUPPORT), pairs(_QUERY)
  decoded, _ = apply(network, params, support, query)
  for row in range(4):
    expected = reference(params, network.config, support, query, row)
    np.testing.assert_allclose(
        decoded.logits[: len(expected), row], expected, atol=1e-5
    )


@pytest.mark.parametrize('name', ['full', 'padded'])
def test_padding_counts_only_if_it_is_not_masked(name: str) -> None:
  network, params = make(name)
  support, query = pairs(_SUPPORT), pairs(_QUERY)
  narrow, _ = apply(network, params, support, query)
  wide, context = apply(
      network, params, pairs(_SUPPORT, 9, 6), pairs(_QUERY, 9, 11)
  )
  for row, length in enumerate(query.outputs.lengths):
    difference = abs(wide.logits[:length, row] - narrow.logits[:length, row])
    assert (difference.max() < 1e-5) == (name == 'full')
  assert np.isfinite(wide.logits).all()
  assert context.memory_attention.shape == (9, 4, 3)


def test_contexts_of_padding_are_those_of_the_mean_value() -> None:
  network, params = make('padded')
  support, query = pairs(_SUPPORT), pairs(_QUERY)
  _, context = apply(network, params, support, query)
  attention = np.asarray(context.memory_attention)
  for row, length in enumerate(query.inputs.lengths):
    np.testing.assert_allclose(attention[length:, row], 1 / 3, atol=1e-6)
  assert np.asarray(context.mask).all()


def test_the_memory_is_a_set() -> None:
  network, params = make('full')
  query = pairs(_QUERY)
  decoded, _ = apply(network, params, pairs(_SUPPORT), query)
  order = [2, 0, 1]
  turned = [[side[i] for i in order] for side in _SUPPORT]
  other, _ = apply(network, params, pairs(turned), query)
  np.testing.assert_allclose(other.logits, decoded.logits, atol=1e-5)
  less = [side[:2] for side in _SUPPORT]
  fewer, _ = apply(network, params, pairs(less), query)
  assert abs(fewer.logits - decoded.logits).max() > 1e-3


def test_the_decoder_starts_from_the_context_of_the_querys_end() -> None:
  network, params = make('no_attention')
  support = pairs(_SUPPORT)
  decoded, context = apply(network, params, support, pairs(_QUERY))
  ends = np.asarray(pairs(_QUERY).inputs.lengths) - 1
  np.testing.assert_array_equal(
      context.start, np.asarray(context.steps)[ends, np.arange(4)]
  )
  params = plain(params)
  for row, start in enumerate(np.asarray(context.start)):
    hidden = params['decoder/embedding']['table'][[_OUTPUTS.sos]]
    for layer in range(2):  # The same start for h and c of both layers.
      name = f'decoder/layer_{layer}'
      hidden = _run_lstm(params, name, hidden, start, start)
    expected = _linear(params, 'decoder/readout', hidden[0])
    np.testing.assert_allclose(decoded.logits[0, row], expected, atol=1e-5)


def test_the_last_step_has_heard_backwards_of_the_end_only() -> None:
  network, params = make('standard')
  read = hk.transform(
      lambda rows: layers.SequenceEncoder(5, 5, 2, 0.0, 'input_encoder')(rows)
  )
  ours = {
      name.removeprefix('encoder/~/'): leaves
      for name, leaves in params.items()
      if name.startswith('encoder/')
  }
  steps, last = jax.jit(read.apply)(ours, None, pairs(_QUERY).inputs)
  for row, length in enumerate(pairs(_QUERY).inputs.lengths):
    assert abs(last[row] - steps[length - 1, row]).max() > 1e-3
    assert (np.asarray(steps)[length:, row] == 0).all()
    # Row by row in NumPy: the last of `expected` has heard all words forth, and
    # only EOS back; `ends` is the sum of both ends.
    expected, ends = _encode(
        plain(params),
        'encoder/input_encoder',
        _tokens(pairs(_QUERY).inputs, row),
    )
    np.testing.assert_allclose(
        steps[:length, row], expected, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(last[row], ends, rtol=1e-5, atol=1e-6)


def test_dropout_is_on_in_training_alone() -> None:
  network, params = make('full')
  support, query = pairs(_SUPPORT), pairs(_QUERY)
  train = jax.jit(lambda key: network.apply(params, key, support, query, True))
  one, two = (train(jax.random.key(i))[0].logits for i in range(2))
  assert abs(one - two).max() > 1e-3
  np.testing.assert_array_equal(one, train(jax.random.key(0))[0].logits)


def _find_decoder_that_ends(
    network: models.Model, find: Callable[[Any], Any]
) -> Any:
  """Returns parameters whose greedy rows end after different numbers of steps.

  Freshly drawn ones repeat a symbol for ever; large ones are livelier.
  """
  init = jax.jit(network.init)
  for seed in range(500):
    params = jax.tree.map(lambda x: 6 * x, init(jax.random.key(seed)))
    is_end = np.asarray(find(params)) == _OUTPUTS.eos
    if len(set(is_end[is_end.any(1)].argmax(1))) > 1:
      return params
  raise AssertionError('no such parameters')


def test_greedy_decoding_finds_a_target_if_its_symbols_are_the_likeliest() -> (
    None
):
  """The shortcut of `evaluate_rows`, on networks that get some rows right."""
  network, _ = make(next(iter(_VARIANTS)))
  support, query = pairs(_SUPPORT), pairs(_QUERY, outputs=7)
  decode = functools.partial(greedy.decode, network)
  find = jax.jit(lambda params: decode(params, support, query.inputs, 12))
  params = _find_decoder_that_ends(network, find)
  decoded = np.asarray(find(params))
  rows = [_OUTPUTS.decode(row.tolist()) for row in decoded]
  is_ended = (decoded == _OUTPUTS.eos).any(1)
  # Targets that greedy decoding finds, and targets that differ in one symbol.
  for change in (list, _shorten, _prolong):
    # No target has the symbol of the start, which a network may well emit.
    targets = [change(s for s in row if s != 'SOS')[:12] for row in rows]
    asked = pairs((_QUERY[0], targets), outputs=13)
    logits = apply(network, params, support, asked)[0].logits
    correct = (
        np.asarray(learner.evaluate_rows(logits, asked.outputs).correct) > 0
    )
    same = [tuple(target) == row for target, row in zip(targets, rows)]
    np.testing.assert_array_equal(correct, same & is_ended)
    if change is list:
      assert correct.any()


def _shorten(row: Iterable[str]) -> list[str]:
  return list(row)[:-1]


def _prolong(row: Iterable[str]) -> list[str]:
  return [*row, 'A']


def test_judging_by_hand() -> None:
  outputs = pairs((['a', 'b'], ['AB', 'C']), outputs=4).outputs
  logits = np.zeros((4, 2, 6), np.float32)
  eos = _OUTPUTS.eos
  for row, symbols in enumerate([(0, 1, eos), (2, eos)]):
    for step, symbol in enumerate(symbols):
      logits[step, row, symbol] = 3.0
  right = np.exp(3) / (np.exp(3) + 5)
  scores = learner.evaluate_rows(jnp.asarray(logits), outputs)
  assert scores.correct.tolist() == [1, 1]
  expected = [-3 * np.log(right), -2 * np.log(right)]
  np.testing.assert_allclose(scores.loss, expected, rtol=1e-6)
  logits[1, 1, eos] = -1.0  # The second row does not end.
  scores = learner.evaluate_rows(jnp.asarray(logits), outputs)
  assert scores.correct.tolist() == [1, 0]
  loss, _ = learner.summarise(scores)
  np.testing.assert_allclose(loss, scores.loss.sum() / 5, rtol=1e-6)


# Parameters: those of the published networks, with one bias per cell for two.


@pytest.mark.parametrize(
    'num_inputs, num_outputs, counts',
    [
        (4, 4, (4_021_206, 3_941_006, 2_333_406)),  # mutual exclusivity
        (13, 6, (4_024_208, 3_944_008, 2_336_008)),  # permutation
        (33, 26, (4_040_228, 3_960_028, 2_348_028)),  # augmentation, length
        (15, 8, (4_025_810, 3_945_610, 2_337_210)),  # around right
    ],
)
def test_numbers_of_parameters(
    num_inputs: int, num_outputs: int, counts: tuple[int, ...]
) -> None:
  vocabs = [
      vocabulary.Vocabulary(tuple(map(str, range(number))))
      for number in (num_inputs, num_outputs)
  ]
  sizes: dict[str, Any] = dict(
      input_vocab=vocabs[0], output_vocab=vocabs[1], hidden_dim=200
  )
  # Second biases: 800 per layer and direction; four such in each encoder.
  for variant, count, num_cells in zip(
      ('full', 'no_attention', 'standard'), counts, (10, 10, 6)
  ):
    network = models.make(_VARIANTS[variant](**sizes))
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    assert base.num_params(shapes) == count - 800 * num_cells


@pytest.mark.slow
def test_initial_values_are_spread_as_in_pytorch() -> None:
  network = models.make(_FULL(hidden_dim=100))
  params = plain(jax.jit(network.init)(jax.random.key(0)))
  assert abs(params['decoder/embedding']['table'].std() - 1) < 0.15
  recurrent = params['encoder/input_encoder/layer_1_back']
  for name in ('w_x', 'w_h'):
    assert 0.099 < abs(recurrent[name]).max() <= 0.1
    spread = recurrent[name].std() * np.sqrt(3)
    np.testing.assert_allclose(spread, 0.1, rtol=0.02)
  assert 0.1 < abs(recurrent['b']).max() <= 0.2
  spread = recurrent['b'].std() * np.sqrt(3 / 2)
  np.testing.assert_allclose(spread, 0.1, rtol=0.1)
  combine = params['encoder/combine']  # It has 200 inputs.
  bound = 1 / np.sqrt(200)
  for leaf in combine.values():
    assert 0.95 * bound < abs(leaf).max() <= bound


@pytest.mark.parametrize(
    'overrides, message',
    [
        (dict(hidden_dim=0), 'model.hidden_dim is 0; it must be positive'),
        (dict(dropout_rate=1.0), 'model.dropout_rate is 1.0; it must be at'),
    ],
)
def test_impossible_networks_are_refused(
    overrides: dict[str, Any], message: str
) -> None:
  with pytest.raises(errors.UserError, match=message):
    models.make(_FULL(**overrides))

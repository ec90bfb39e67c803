"""Episodes: what is drawn, and that it means what it should."""

from collections.abc import Iterator, Sequence
import itertools
from typing import Any

import jax
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.studies.meta_seq2seq import episodes
from modular_hyperteacher.studies.meta_seq2seq import scan
from modular_hyperteacher.studies.meta_seq2seq import scan_episodes
from tests.helpers import slow
from tests.helpers import words

_SIZES = {
    'add_jump': dict(num_support=20, num_query=20, limits=(48, 48, 48)),
    'around_right': dict(num_support=20, num_query=20, limits=(48, 48, 48)),
    'length': dict(num_support=60, num_query=20, limits=(48, 22, 11)),
}

_WORLDS = {
    'permuted': ('add_jump', 'permuted', 0),
    'extended': ('add_jump', 'extended', 20),
    'around_right': ('around_right', 'extended', 2),
    'length': ('length', 'extended', 20),
}


def make(
    split: str, meanings: str, num_extra: int, **overrides: Any
) -> scan_episodes.ScanEpisodes:
  sizes = _SIZES.get(split, _SIZES['add_jump'])
  limits = sizes['limits']
  fields: dict[str, Any] = dict(
      split=split,
      meanings=meanings,
      num_support=sizes['num_support'],
      num_query=sizes['num_query'],
      num_extra=num_extra,
      max_actions=limits[0],
      max_query_actions=limits[1],
      max_support_actions=limits[2],
  )
  return scan_episodes.ScanEpisodes(**(fields | overrides))


def infer(
    rows: list[scan.Pair], replaced: Sequence[str] = scan.PRIMITIVES
) -> dict[str, str]:
  """Returns the meaning of every replaced word in an episode, by brute force.

  The grammar reads a command with placeholders in place of new words; where
  its actions have one, the episode's have what it stands for.
  """
  known = set(scan.WORDS) - set(replaced)
  meaning = {}
  for command, actions in rows:
    names = dict(zip(sorted(set(command) - known), replaced))
    words = {scan.MEANINGS[name]: word for word, name in names.items()}
    plain = scan.interpret(tuple(names.get(word, word) for word in command))
    assert len(plain) == len(actions)
    for ours, theirs in zip(plain, actions):
      if ours in words:
        assert meaning.setdefault(words[ours], theirs) == theirs
      else:
        assert ours == theirs
  return meaning


@pytest.mark.parametrize(
    'name',
    slow.mark(['permuted', 'extended', 'length'], ['extended', 'length']),
)
def test_outputs_are_what_the_grammar_makes_of_an_episodes_meanings(
    name: str,
) -> None:
  for support, query in words.draw(make(*_WORLDS[name]), 6):
    meaning = infer(support + query)
    assert len(meaning) == len(set(meaning.values())) == 4


def test_directions_mean_what_the_grammar_makes_of_them() -> None:
  seen = set()
  for support, query in words.draw(make(*_WORLDS['around_right']), 12):
    meaning = infer(support + query, scan.DIRECTIONS)
    assert 0 < len(meaning) == len(set(meaning.values())) <= 2
    seen |= meaning.items()
  assert len(seen) > 4  # Of four words, with meanings out of four.
  assert ('right', 'I_TURN_RIGHT') not in seen


def test_every_permutation_but_the_identity_occurs() -> None:
  found = set()
  for support, query in words.draw(make(*_WORLDS['permuted']), 300):
    meaning = infer(support + query)
    found.add(tuple(meaning[word] for word in scan.PRIMITIVES))
  actions = [scan.MEANINGS[word] for word in scan.PRIMITIVES]
  every = set(itertools.permutations(actions))
  assert found == every - {tuple(actions)}


def _tables(
    name: str, number: int = 3000
) -> tuple[scan_episodes.ScanEpisodes, Any]:
  world = make(*_WORLDS[name])
  assert world._draw_tables is not None
  keys = jax.random.split(jax.random.key(3), number)
  return world, jax.tree.map(np.asarray, jax.vmap(world._draw_tables)(keys))


def _pairings(
    world: scan_episodes.ScanEpisodes, tables: Any, words: tuple[str, ...]
) -> Iterator[list[tuple[str, str]]]:
  """Returns the (word, action) pairs of every episode, with SCAN's names."""
  inputs, outputs = world.input_vocab.symbols, world.output_vocab.symbols
  for new_words, new_actions in zip(*tables):
    yield [
        (
            inputs[new_words[inputs.index(word)]],
            outputs[new_actions[outputs.index(scan.MEANINGS[word])]],
        )
        for word in words
    ]


@pytest.mark.parametrize(
    'name, words, forbidden, allowed',
    [
        ('extended', scan.PRIMITIVES, ('jump', 'I_JUMP'), ('walk', 'I_WALK')),
        (
            'around_right',
            scan.DIRECTIONS,
            ('right', 'I_TURN_RIGHT'),
            ('left', 'I_TURN_LEFT'),
        ),
        ('length', scan.PRIMITIVES, None, ('jump', 'I_JUMP')),
    ],
)
def test_what_is_tested_is_never_trained(
    name: str,
    words: tuple[str, ...],
    forbidden: tuple[str, str] | None,
    allowed: tuple[str, str],
) -> None:
  world, tables = _tables(name)
  every = list(_pairings(world, tables, words))
  pairs = {pair for pairing in every for pair in pairing}
  assert forbidden not in pairs
  assert allowed in pairs
  for pairing in every:
    assert len({word for word, _ in pairing}) == len(words)
    assert len({action for _, action in pairing}) == len(words)
  new = {word for word, _ in pairs}
  assert len(new) == len(words) + _WORLDS[name][2]


def test_chances_of_meanings_are_those_of_what_is_allowed() -> None:
  world, tables = _tables('around_right', 6000)
  drawn = _pairings(world, tables, scan.DIRECTIONS)
  pairings = [tuple(sorted(pairing)) for pairing in drawn]
  # 4 * 3 * 4 * 3 ordered draws, of which 'right' with its own action takes an
  # eighth (of 12 positions of the pair, 9 completions).
  allowed = 144 - 18
  counts = np.unique(pairings, axis=0, return_counts=True)[1]
  assert len(counts) == allowed / 2
  expected = len(pairings) / len(counts)
  # A chi-square statistic has mean n - 1 and variance 2 (n - 1).
  statistic = ((counts - expected) ** 2 / expected).sum()
  degrees = len(counts) - 1
  assert abs(statistic - degrees) < 4 * np.sqrt(2 * degrees)


@pytest.mark.parametrize('name', slow.mark(_WORLDS, list(_WORLDS)[1:]))
def test_support_and_query_share_no_command(name: str) -> None:
  for support, query in words.draw(make(*_WORLDS[name]), 20, seed=5):
    rows = [pair.command for pair in support + query]
    assert len(set(rows)) == len(rows)
    if name == 'length':
      assert max(len(p.actions) for p in support) < 12
      assert {12 <= len(p.actions) <= 22 for p in query} == {True}


@pytest.mark.parametrize(
    'split, support',
    [
        ('add_jump', {('walk',), ('look',), ('run',), ('jump',)}),
        ('around_right', {('turn', 'left'), ('turn', 'right')}),
    ],
)
def test_test_sets_ask_the_split_of_a_memory_that_spells_it_out(
    split: str, support: set[tuple[str, ...]]
) -> None:
  world = make(split, 'extended', 3)
  test_set = world.make_test_set(None, jax.random.key(0), 2)
  assert len(test_set.weights) % 2 == 0
  rows = words.in_words(world, test_set.episodes)
  asked = []
  for (shown, query), weights in zip(rows, np.asarray(test_set.weights)):
    assert {pair.command for pair in shown} == support
    for pair in shown:
      assert pair.actions == scan.interpret(pair.command)
    asked += [pair for pair, weight in zip(query, weights) if weight]
  assert sorted(asked) == sorted(scan.split(split).test)


def test_all_uses_of_around_right_are_judged_besides() -> None:
  world = make(*_WORLDS['around_right'])
  test_set = world.make_test_set(None, jax.random.key(0), 2)
  is_row = np.asarray(test_set.is_row)
  assert (is_row.sum(), float(test_set.weights.sum())) == (5685, 4476)
  rows = words.in_words(world, test_set.episodes)
  asked = [
      pair
      for (_, query), real in zip(rows, is_row)
      for pair, is_asked in zip(query, real)
      if is_asked
  ]
  assert len(set(asked)) == 5685
  turns = np.array([
      [scan.contains(pair.command, 'turn around right') for pair in query]
      for _, query in rows
  ])
  counted = np.asarray(test_set.weights) > 0
  np.testing.assert_array_equal(counted, is_row & ~turns)
  found = world.measure(test_set, ~turns)
  assert found['accuracy_all_uses'] == pytest.approx(4476 / 5685)
  found.pop('accuracy_all_uses')
  assert set(found.values()) == {1.0}


def test_length_is_asked_of_five_support_sets_from_its_training_rows() -> None:
  world = make(*_WORLDS['length'])
  test_set = world.make_test_set(None, jax.random.key(0), 1)
  assert float(test_set.weights.sum()) == 5 * 3920
  drawn = words.in_words(world, test_set.episodes)
  shown = [tuple(sorted(support)) for support, _ in drawn]
  assert len(set(shown)) == 5
  train = set(scan.split('length').train)
  assert all(pair in train for pair in shown[0])
  correct = np.asarray(test_set.episodes.query.outputs.lengths) <= 27
  found = world.measure(test_set, correct)
  assert found['accuracy_length_26'] == 1 and found['accuracy_length_27'] == 0
  assert len(found) == 11


@pytest.mark.parametrize('name', list(_WORLDS))
def test_examples_are_asked_of_what_tests_show(name: str) -> None:
  world = make(*_WORLDS[name])
  ((support, query),) = words.in_words(
      world, jax.tree.map(lambda x: x[None], world.example())
  )
  assert len(query) == 1
  for pair in support + query:
    assert pair.actions == scan.interpret(pair.command)
  split = world.make_test_set(None, jax.random.key(0), 1).episodes.support
  assert len(support) == split.outputs.lengths.shape[1]


def test_standard_batches_are_training_rows() -> None:
  world = make('add_jump', 'fixed', 0, num_support=0, num_query=500)
  ((support, query),) = words.draw(world, 1)
  assert not support
  assert set(query) <= set(scan.split('add_jump').train)
  isolated = sum(pair.command == ('jump',) for pair in query)
  assert 20 <= isolated <= 80  # A tenth, give or take five deviations.


def test_aligned_batches_have_one_jump_and_own_meanings() -> None:
  world = make('add_jump', 'aligned', 20, num_support=0, num_query=40)
  for _, query in words.draw(world, 10):
    isolated = [pair for pair in query if 'jump' in pair.command]
    assert isolated == [scan.Pair(('jump',), ('I_JUMP',))]
    for word, action in infer(query).items():
      expected = scan.MEANINGS.get(word, f'I_{word.upper()}')
      assert action == expected


def test_smaller_worlds_are_filtered() -> None:
  world = make(
      'add_jump',
      'permuted',
      0,
      max_actions=8,
      max_query_actions=8,
      max_support_actions=8,
  )
  assert world.num_rows['train'] == 6268
  assert world.num_rows['ood'] == 2156


@pytest.mark.parametrize(
    'overrides, message',
    [
        (dict(split='add_run'), "task.split is 'add_run'; choose one of"),
        (dict(meanings='mixed'), "task.meanings is 'mixed'; choose one of"),
        (dict(num_extra=3), 'task.num_extra is 3; .* it must be 0'),
        (dict(num_support=0), 'task.num_support is 0; .* must be positive'),
        (dict(num_query=0), 'task.num_query is 0; it must be at least 1'),
        (dict(num_support=500), 'needs 520 different rows out of'),
        (dict(max_actions=3), 'task.max_actions is 3; it must be from 4 to 48'),
        (dict(max_query_actions=7), 'must be at least task.max_actions, 48'),
        (
            dict(split='length', max_support_actions=30),
            'they must be in this order below task.max_actions, 48',
        ),
        (
            dict(
                split='length',
                meanings='fixed',
                num_support=0,
                max_actions=23,
                max_query_actions=22,
            ),
            'task.max_actions is 23; it leaves no command for the test of',
        ),
        (
            dict(
                split='around_right',
                meanings='fixed',
                num_support=0,
                max_actions=7,
            ),
            'task.max_actions is 7; it leaves no command for the test of',
        ),
        (
            dict(split='around_right', meanings='aligned'),
            "task.split is 'around_right'; with task.meanings 'aligned'",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    overrides: dict[str, Any], message: str
) -> None:
  with pytest.raises(errors.UserError, match=message):
    fields: dict[str, Any] = dict(
        split='add_jump', meanings='permuted', num_extra=0
    )
    make(**(fields | overrides))


def test_no_more_distinct_rows_than_there_are() -> None:
  episodes.check_distinct('field', 4, 4)
  for number, size, most in ((5, 4, 4), (29, 100, 28)):
    with pytest.raises(errors.UserError, match=f'{size}; .* at most {most}.'):
      episodes.check_distinct('field', number, size)


def test_distinct_draws_are_uniform_and_distinct() -> None:
  keys = jax.random.split(jax.random.key(0), 4000)
  draws = np.asarray(
      jax.vmap(lambda key: episodes.draw_distinct(key, 2, 5))(keys)
  )
  assert (draws[:, 0] != draws[:, 1]).all()
  counts = np.zeros((5, 5))
  np.add.at(counts, tuple(draws.T), 1)
  statistic = ((counts[counts > 0] - 200) ** 2 / 200).sum()
  assert abs(statistic - 19) < 4 * np.sqrt(2 * 19)

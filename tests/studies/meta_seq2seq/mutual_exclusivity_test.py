"""Episodes of mutual exclusivity."""

import jax
import numpy as np

from modular_hyperteacher.studies.meta_seq2seq import mutual_exclusivity
from modular_hyperteacher.studies.meta_seq2seq import scan
from tests.helpers import words


def _colours(pairs: list[scan.Pair]) -> dict[str, str]:
  """Returns word -> colour, and checks that pairs agree on it."""
  meaning = {}
  for command, actions in pairs:
    assert len(command) == len(actions)
    for word, colour in zip(command, actions):
      assert meaning.setdefault(word, colour) == colour
  assert len(set(meaning.values())) == len(meaning)
  return meaning


def test_mutual_exclusivity_withholds_one_word() -> None:
  world = mutual_exclusivity.MutualExclusivity(num_query=20)
  withheld = set()
  for support, query in words.draw(world, 50):
    shown = {word for pair in support for word in pair.command}
    assert len(support) == len(shown) == 3
    (missing,) = set(world.input_vocab.symbols) - shown
    withheld.add(missing)
    commands = [pair.command for pair in query]
    assert len(set(commands)) == 20
    assert {len(command) for command in commands} <= set(range(2, 7))
    _colours(support + query)
  assert len(withheld) == 4


def test_held_out_mappings_are_never_trained_on() -> None:
  world = mutual_exclusivity.MutualExclusivity(num_query=20)
  params = jax.tree.map(np.asarray, world.init(jax.random.key(4)))
  held_out = {tuple(mapping) for mapping in params['held_out']}
  training = {tuple(mapping) for mapping in params['training']}
  assert (len(held_out), len(training)) == (5, 19)
  assert not held_out & training
  test_set = world.make_test_set(params, jax.random.key(5), 8)
  assert test_set.weights.shape == (24, 20)
  assert float(test_set.weights.sum()) == 400
  tested = words.in_words(world, test_set.episodes)
  names = world.output_vocab.symbols
  for i, (support, query) in enumerate(tested[:20]):
    meaning = _colours(support + query)
    assert (
        tuple(names.index(meaning[word]) for word in world.input_vocab.symbols)
        in held_out
    )
    assert world.input_vocab.symbols[i % 4] not in {
        word for pair in support for word in pair.command
    }


def test_training_episodes_have_every_training_mapping_and_no_other() -> None:
  world = mutual_exclusivity.MutualExclusivity(num_query=20)
  params = world.init(jax.random.key(1))  # As `words.draw` has it.
  names = world.output_vocab.symbols
  drawn = {
      tuple(
          names.index(_colours(support + query)[word])
          for word in world.input_vocab.symbols
      )
      for support, query in words.draw(world, 400)
  }
  assert drawn == {tuple(m) for m in np.asarray(params['training']).tolist()}


def test_what_is_asked_of_the_withheld_word_is_told_apart() -> None:
  world = mutual_exclusivity.MutualExclusivity(num_query=20)
  params = world.init(jax.random.key(4))
  test_set = world.make_test_set(params, jax.random.key(5), 1)
  correct = np.array([
      [
          set(pair.command) <= {word for p in support for word in p.command}
          for pair in query
      ]
      for support, query in words.in_words(world, test_set.episodes)
  ])
  found = world.measure(test_set, correct)
  assert found['accuracy_withheld'] == 0
  assert found['accuracy_shown'] == 1

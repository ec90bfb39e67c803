"""SCAN: commands, what they mean, and how they are split, by rule.

Source: Lake and Baroni (2018); the split 'around_right' is from Loula et al.
(2018). Nothing is downloaded: the data set is finite, and its grammar

  C -> S "and" S | S "after" S | S
  S -> V "twice" | V "thrice" | V
  V -> D "opposite" R | D "around" R | D R | U
  D -> U | "turn"
  U -> "walk" | "look" | "run" | "jump"
  R -> "left" | "right"

yields all of its 20,910 commands. For example, 'jump twice after turn left'
means I_TURN_LEFT I_JUMP I_JUMP.
"""

import functools
import itertools
import pathlib
from typing import Iterable, NamedTuple

from modular_hyperteacher import errors

PRIMITIVES = ('walk', 'look', 'run', 'jump')
DIRECTIONS = ('left', 'right')
WORDS = PRIMITIVES + DIRECTIONS + (
    'turn', 'opposite', 'around', 'twice', 'thrice', 'and', 'after'
)
MEANINGS = {
    'walk': 'I_WALK',
    'look': 'I_LOOK',
    'run': 'I_RUN',
    'jump': 'I_JUMP',
    'left': 'I_TURN_LEFT',
    'right': 'I_TURN_RIGHT',
}
ACTIONS = tuple(MEANINGS.values())
SPLITS = ('add_jump', 'add_turn_left', 'around_right', 'length')
MAX_ACTIONS = 48
# The longest outputs of the training rows of the split 'length'.
MAX_TRAINING_ACTIONS = 22

Words = tuple[str, ...]


class Pair(NamedTuple):
  """A command and the actions that it means."""

  command: Words
  actions: Words


class Split(NamedTuple):
  """Rows to train on, some of them repeated, and rows to test on."""

  train: list[Pair]
  test: list[Pair]


@functools.cache
def all_pairs() -> tuple[Pair, ...]:
  """Returns all commands with their actions, each once."""
  return tuple(Pair(command, interpret(command)) for command in _commands())


def _commands():
  units = [(word,) for word in PRIMITIVES]
  phrases = list(units)
  for verb in units + [('turn',)]:
    for manner in (('opposite',), ('around',), ()):
      phrases += [verb + manner + (direction,) for direction in DIRECTIONS]
  repeats = ((), ('twice',), ('thrice',))
  parts = [phrase + repeat for phrase in phrases for repeat in repeats]
  yield from parts
  for conjunction in ('and', 'after'):
    for first, second in itertools.product(parts, parts):
      yield first + (conjunction,) + second


def interpret(command: Words) -> Words:
  """Returns the actions that a command means."""
  for conjunction in ('and', 'after'):
    if conjunction in command:
      place = command.index(conjunction)
      parts = [interpret(command[:place]), interpret(command[place + 1 :])]
      return sum(parts if conjunction == 'and' else parts[::-1], ())
  repeats = {'twice': 2, 'thrice': 3}
  if command[-1] in repeats:
    return repeats[command[-1]] * interpret(command[:-1])
  return _interpret_phrase(command)


def _interpret_phrase(phrase):
  """Returns the actions of 'walk', 'turn left', 'run around right', ..."""
  verb, *manner = phrase
  action = () if verb == 'turn' else (MEANINGS[verb],)
  if not manner:
    return action
  turn = (MEANINGS[manner[-1]],)
  if manner[0] == 'opposite':
    return turn + turn + action
  if manner[0] == 'around':
    return 4 * (turn + action)
  return turn + action


def contains(command: Words, phrase: str) -> bool:
  """Returns whether words occur in a command, in this order, side by side."""
  return f' {phrase} ' in f' {" ".join(command)} '


def split(name: str, pairs: Iterable[Pair] | None = None) -> Split:
  """Returns a split by its rule.

  In 'add_jump' the command "jump" alone makes up a tenth of the training rows,
  as does "turn left" in 'add_turn_left'. The commands with "turn around right"
  are on neither side of 'around_right'.

  Args:
    name: one of SPLITS.
    pairs: what to split; all pairs if None.
  """
  pairs = all_pairs() if pairs is None else tuple(pairs)
  if name == 'add_jump':
    return _isolate('jump', pairs)
  if name == 'add_turn_left':
    return _isolate('turn left', pairs)
  if name == 'around_right':
    held_out = [p for p in pairs if contains(p.command, 'around right')]
    return Split(
        [p for p in pairs if not contains(p.command, 'around right')],
        [p for p in held_out if not contains(p.command, 'turn around right')],
    )
  if name == 'length':
    return split_by_length(pairs, MAX_TRAINING_ACTIONS)
  raise ValueError(
      f"the split is '{name}'; choose one of {', '.join(SPLITS)}."
  )


def split_by_length(pairs: Iterable[Pair], max_actions: int) -> Split:
  """Returns pairs of at most, and of more than so many actions."""
  pairs = tuple(pairs)
  return Split(
      [p for p in pairs if len(p.actions) <= max_actions],
      [p for p in pairs if len(p.actions) > max_actions],
  )


def _isolate(phrase, pairs):
  """Trains on a phrase alone, in a tenth of the rows, and tests on its use."""
  without = [p for p in pairs if not contains(p.command, phrase)]
  alone = tuple(phrase.split())
  repeated = len(without) // 9 * [Pair(alone, interpret(alone))]
  used = [p for p in pairs if contains(p.command, phrase)]
  return Split(without + repeated, [p for p in used if p.command != alone])


def read(path: pathlib.Path) -> list[Pair]:
  """Returns the pairs of a file of the published data set, in its order.

  A line is 'IN: jump twice OUT: I_JUMP I_JUMP'. With the files of
  github.com/brendenlake/SCAN at hand, their sets of pairs can be compared with
  what `split` returns.

  Raises:
    UserError: if a line has another form; names file and line.
  """
  pairs = []
  for number, line in enumerate(path.read_text().splitlines(), start=1):
    head, found, actions = line.partition(' OUT: ')
    if not found or not head.startswith('IN: '):
      raise errors.UserError(
          f"{path}, line {number} is '{line}'; it must have the form 'IN: words"
          " OUT: actions'."
      )
    words = head.removeprefix('IN: ').split()
    pairs.append(Pair(tuple(words), tuple(actions.split())))
  return pairs

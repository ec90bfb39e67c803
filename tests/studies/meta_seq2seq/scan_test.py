"""SCAN: counts that follow from its grammar, and its splits by rule.

Counts are those of the published data files, with which the sets of pairs were
compared. The files themselves are not part of this repository.
"""

import collections
from collections.abc import Mapping
import pathlib

import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.studies.meta_seq2seq import scan


def test_all_commands_and_their_sizes() -> None:
  pairs = scan.all_pairs()
  assert len(pairs) == len(set(pairs)) == 20_910
  words = [len(pair.command) for pair in pairs]
  actions = sorted(len(pair.actions) for pair in pairs)
  assert (min(words), max(words)) == (1, 9)
  assert sum(words) / len(words) == pytest.approx(7.25, abs=0.005)
  assert (actions[0], actions[-1]) == (1, 48)
  assert sum(actions) / len(actions) == pytest.approx(14.32, abs=0.005)
  assert actions[len(actions) // 2] == 12
  assert len({pair.actions for pair in pairs}) == 9228


@pytest.mark.parametrize(
    'phrase, count',
    [
        *((word, 7707) for word in scan.PRIMITIVES),
        ('turn', 6714),
        ('left', 14_355),
        ('right', 14_355),
        ('twice', 11_594),
        ('thrice', 11_594),
        ('and', 10_404),
        ('after', 10_404),
        ('around', 10_470),
        ('opposite', 10_470),
        ('around right', 5685),
    ],
)
def test_commands_with_a_word(phrase: str, count: int) -> None:
  found = [p for p in scan.all_pairs() if scan.contains(p.command, phrase)]
  assert len(found) == count


def test_commands_without_a_primitive() -> None:
  without = [
      p for p in scan.all_pairs() if not set(p.command) & set(scan.PRIMITIVES)
  ]
  assert len(without) == 666


@pytest.mark.parametrize(
    'command, actions',
    [
        ('jump', 'JUMP'),
        ('turn left', 'TURN_LEFT'),
        ('jump left', 'TURN_LEFT JUMP'),
        ('turn opposite right', 'TURN_RIGHT TURN_RIGHT'),
        ('walk opposite left', 'TURN_LEFT TURN_LEFT WALK'),
        ('turn around left', 'TURN_LEFT TURN_LEFT TURN_LEFT TURN_LEFT'),
        (
            'jump around right',
            'TURN_RIGHT JUMP TURN_RIGHT JUMP TURN_RIGHT JUMP TURN_RIGHT JUMP',
        ),
        ('look thrice', 'LOOK LOOK LOOK'),
        ('run and jump twice', 'RUN JUMP JUMP'),
        ('run left twice after look', 'LOOK TURN_LEFT RUN TURN_LEFT RUN'),
    ],
)
def test_meanings_by_hand(command: str, actions: str) -> None:
  expected = tuple(f'I_{action}' for action in actions.split())
  assert scan.interpret(tuple(command.split())) == expected


@pytest.mark.parametrize(  # Which together generate all 24 renamings.
    'names',
    [
        scan.PRIMITIVES[1:] + scan.PRIMITIVES[:1],
        scan.PRIMITIVES[1::-1] + scan.PRIMITIVES[2:],
    ],
)
def test_renaming_primitives_changes_nothing_but_names(
    names: tuple[str, ...],
) -> None:
  renamed: dict[str, str] = dict(zip(scan.PRIMITIVES, names, strict=True))
  meanings = {scan.MEANINGS[a]: scan.MEANINGS[b] for a, b in renamed.items()}

  def rename(
      symbols: tuple[str, ...], table: Mapping[str, str]
  ) -> tuple[str, ...]:
    return tuple(table.get(symbol, symbol) for symbol in symbols)

  pairs = scan.all_pairs()
  others = {
      scan.Pair(rename(p.command, renamed), rename(p.actions, meanings))
      for p in pairs
  }
  assert others == set(pairs)


@pytest.mark.parametrize(
    'name, train, unique, test',
    [
        ('add_jump', 14_670, 13_204, 7706),
        ('add_turn_left', 21_890, 19_702, 1208),
        ('around_right', 15_225, 15_225, 4476),
        ('length', 16_990, 16_990, 3920),
    ],
)
def test_sizes_of_splits(name: str, train: int, unique: int, test: int) -> None:
  split = scan.split(name)
  assert (len(split.train), len(set(split.train))) == (train, unique)
  assert len(split.test) == len(set(split.test)) == test
  assert not set(split.train) & set(split.test)


def test_isolated_commands_are_a_tenth() -> None:
  train = scan.split('add_jump').train
  isolated = [p for p in train if 'jump' in p.command]
  assert isolated == 1467 * [scan.Pair(('jump',), ('I_JUMP',))]
  assert len(isolated) == len(train) / 10
  train = scan.split('add_turn_left').train
  isolated = [p for p in train if scan.contains(p.command, 'turn left')]
  assert len(isolated) == 2189


def test_neither_side_turns_around_right() -> None:
  sides = scan.split('around_right')
  for pair in sides.train + sides.test:
    assert not scan.contains(pair.command, 'turn around right')


def test_lengths_of_the_length_split() -> None:
  sizes = collections.Counter(
      len(pair.actions) for pair in scan.split('length').test
  )
  assert sorted(sizes.items()) == [
      (24, 336),
      (25, 448),
      (26, 512),
      (27, 448),
      (28, 448),
      (30, 576),
      (32, 448),
      (33, 256),
      (36, 64),
      (40, 256),
      (48, 128),
  ]
  short = [p for p in scan.all_pairs() if len(p.actions) < 12]
  assert len(short) == 10_292
  assert len(scan.split('length').train) - len(short) == 6698


def test_published_files_can_be_read(tmp_path: pathlib.Path) -> None:
  path = tmp_path / 'tasks.txt'
  path.write_text(
      'IN: jump OUT: I_JUMP\nIN: turn left twice OUT: I_TURN_LEFT I_TURN_LEFT\n'
  )
  pairs = scan.read(path)
  assert pairs == [
      scan.Pair(p.command, scan.interpret(p.command)) for p in pairs
  ]
  assert len(pairs) == 2
  path.write_text('IN: jump OUT: I_JUMP\njump I_JUMP\n')
  with pytest.raises(errors.UserError, match="line 2 is 'jump I_JUMP'"):
    scan.read(path)


def test_unknown_splits_are_refused() -> None:
  with pytest.raises(ValueError, match='choose one of add_jump'):
    scan.split('add_run')

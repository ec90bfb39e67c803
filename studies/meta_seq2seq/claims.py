"""Claims of meta sequence-to-sequence learning (Lake, 2019)."""

import functools

import pandas as pd

from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.studies.meta_seq2seq.figures import cells

# Our readings of "near 100" and of "far above".
_NEAR_ONE = 0.95
_FAR = 0.5
# A standard network trains on batches of commands, not on episodes, so these
# fields differ.
_BATCHES = ('task.num_support', 'task.num_query', 'training.num_outer_steps')


def _sample(
    frame: pd.DataFrame, trained: cells.Trained, metric: str = 'accuracy'
) -> comparisons.Sample:
  accuracy = comparisons.sample(frame, trained.cell, 'ood', metric)
  parts = [trained.network.name, trained.meanings, metric]
  if trained.num_extra:
    parts.insert(2, f'{trained.num_extra} extra words')
  name = ', '.join(part for part in parts if part)
  return accuracy.named(name)


def _far_above_lesions(frame: pd.DataFrame) -> comparisons.Comparisons:
  full, *lesions, standard = (_sample(frame, t) for t in cells.PERMUTED)
  return [
      *(full - lesion > _FAR for lesion in lesions),
      (full - standard > _FAR).across(*_BATCHES),
  ]


def _augmented_lesions(frame: pd.DataFrame) -> comparisons.Comparisons:
  full, _, no_attention, aligned = (_sample(frame, t) for t in cells.MORE_VERBS)
  standard = _sample(frame, cells.PERMUTED[-1])
  return [
      full - no_attention > _FAR,
      aligned > standard,
      (full - aligned > _FAR).across(*_BATCHES),
  ]


def _around_right_near_one(frame: pd.DataFrame) -> comparisons.Comparisons:
  full, standard = (_sample(frame, t) for t in cells.AROUND_RIGHT)
  far_above = full - standard > _NEAR_ONE - 0.05
  return [full > _NEAR_ONE, far_above.across(*_BATCHES)]


def _length(frame: pd.DataFrame) -> comparisons.Comparisons:
  meta, standard = (_sample(frame, t) for t in cells.LONGER)
  return [(meta > standard).across(*_BATCHES), meta < _FAR]


_claim = functools.partial(verdicts.Claim, cell=cells.CELL)
CLAIMS = (
    _claim(
        'MS-1',
        'Shown the meanings of three of four words, meta seq2seq infers'
        ' the fourth, for assignments that training left out.',
        artefact='Lake (2019), Section 4.2',
        figure='scan_me',
        compare=lambda frame: [
            _sample(frame, cells.WORDS, metric) > _NEAR_ONE
            for metric in ('accuracy', 'accuracy_withheld')
        ],
    ),
    _claim(
        'MS-2',
        'Trained on permuted meanings, meta seq2seq uses "jump" in new'
        ' commands far better than without support loss, than without'
        ' decoder attention, and than a standard network.',
        artefact='Lake (2019), Table 2',
        experiment='scan_add_jump',
        figure='scan_table2',
        compare=_far_above_lesions,
    ),
    _claim(
        'MS-3',
        'Trained with 20 additional verbs, meta seq2seq uses "jump" in new'
        ' commands with and without support loss.',
        artefact='Lake (2019), Table 2',
        experiment='scan_add_jump',
        figure='scan_table2',
        compare=lambda frame: [
            _sample(frame, trained) > _NEAR_ONE
            for trained in cells.MORE_VERBS[:2]
        ],
    ),
    _claim(
        'MS-4',
        'Trained with 20 additional verbs, meta seq2seq uses "jump" in new'
        ' commands far better than without decoder attention, and than a'
        ' standard network, which gains a little from the verbs.',
        artefact='Lake (2019), Table 2',
        experiment='scan_add_jump',
        figure='scan_table2',
        compare=_augmented_lesions,
    ),
    _claim(
        'MS-5',
        'Meta seq2seq understands "around right" from "around left" and'
        ' "right"; a standard network does not.',
        artefact='Lake (2019), Table 3',
        experiment='scan_around_right',
        figure='scan_table3',
        compare=_around_right_near_one,
    ),
    _claim(
        'MS-6',
        'Meta seq2seq uses "around right" far worse if trained with 20'
        ' additional directions than with two.',
        artefact='Lake (2019), Section 4.5',
        experiment='scan_around_right',
        figure='scan_table3',
        compare=lambda frame: [
            _sample(frame, cells.AROUND_RIGHT[0])
            - _sample(frame, cells.MORE_DIRECTIONS)
            > 0.25
        ],
    ),
    _claim(
        'MS-7',
        'Meta seq2seq is poor at outputs longer than those of training, but'
        ' better than a standard network.',
        artefact='Lake (2019), Table 3',
        experiment='scan_length',
        figure='scan_table3',
        compare=_length,
    ),
)

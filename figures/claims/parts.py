"""Parts of claims on other runs: longer, or of other tasks or students."""

import dataclasses
import functools
from typing import Any

import pandas as pd

from modular_hyperteacher.figures.claims import appendix
from modular_hyperteacher.figures.claims import gridworlds
from modular_hyperteacher.figures.claims import hyperteacher
from modular_hyperteacher.figures.claims import theory
from modular_hyperteacher.figures.extensions import variants
from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import students
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.paper import fig2c
from modular_hyperteacher.figures.paper import fig3e
from modular_hyperteacher.figures.paper import fig_a3
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.tasks.supports import families


def _more_tasks_at_equal_size(curves: pd.DataFrame) -> comparisons.Comparisons:
  """Compares ten modules with four, both learned by students of 40."""
  _, max_active, num_modules = fig_a3.CELL
  size = curves[num_modules] * curves[variants.FACTOR]
  same = (size == 40) & (curves[variants.HELD_OUT] == 0.25)
  return appendix.more_tasks_for_more_modules(
      curves[same], variants.A3_STUDENTS, num_sizes=2
  )


def _triples_above_triangles(frame: pd.DataFrame) -> comparisons.Comparisons:
  alignment = comparisons.at(frame, fig2c.CELL, metric='alignment')
  triples, *disconnected = (
      alignment('adamw', 'continuous', support)
      for support in (families.TRIPLES, *families.WITH_TRIANGLES)
  )
  return [triples > other for other in disconnected]


def _part(
    id_: str,
    what: str,
    sentence: str,
    runs: str = 'longer',
    **changed: Any,
) -> verdicts.Claim:
  """Returns the part of a claim that other runs of its experiment can decide.

  Those of `configs/<experiment>.py:longer` take four times the steps. Fields
  that are not changed are those of the whole claim.
  """
  (whole,) = (
      claim
      for module in (theory, hyperteacher, gridworlds, appendix)
      for claim in module.CLAIMS
      if claim.id == id_
  )
  return dataclasses.replace(
      whole,
      id=f'{id_}, {what}',
      sentence=sentence,
      experiment=f'{whole.experiment}_{runs}',
      **changed,
  )


_OF_3E = {
    'compare': functools.partial(
        students.modular_are_better,
        rest=dict(zip(fig3e.CELL[1:], (8, 2))),
        others=('anil',),
    ),
    'models': (*style.HYPERNETWORKS, 'anil'),
}
_OF_4C = {
    'compare': functools.partial(
        students.modular_are_better, metric='loss', others=('anil',)
    ),
    'models': (*style.HYPERNETWORKS, 'anil'),
}
CLAIMS = (
    _part(
        '2C-c-adam',
        'triples',
        'Latents inferred by Adam, continuous tasks: module alignment is higher'
        ' with the connected three triples than with the disconnected families'
        ' that contain triangles.',
        compare=_triples_above_triangles,
    ),
    _part(
        '2D-d-adam',
        'larger',
        'Latents inferred by Adam, discrete tasks: module alignment falls by'
        " more than 0.05 if students of twice the teacher's size get four"
        ' times as many hidden units, modules, or both.',
    ),
    _part(
        '3B-1',
        'pairs',
        'K = 2 in place of 3, after the usual 3,000 steps: OOD accuracy of both'
        ' hypernetworks is higher than that of both monolithic models.',
        runs='pairs',
    ),
    _part(
        '3E',
        'ANIL',
        'M = 8, K = 2: both hypernetworks reach a higher OOD accuracy than'
        ' ANIL.',
        **_OF_3E,
    ),
    _part(
        '3E',
        'larger teacher',
        'The same after the usual 3,000 steps, if the teacher has eight inputs,'
        ' units and outputs in place of four, six and four.',
        runs='teacher',
        **_OF_3E,
    ),
    _part(
        '3E',
        'larger teacher, longer',
        'The same with the larger teacher, after four times the steps.',
        runs='teacher_longer',
        **_OF_3E,
    ),
    _part(
        '3F',
        'linear',
        'Of four sizes of the linear hypernetwork, the best in between has'
        ' a higher OOD accuracy than the smallest and the largest.',
        models=('linear_hypernetwork',),
    ),
    _part(
        '3F',
        'wider',
        'The same after the usual 3,000 steps, for four widths of the linear'
        " hypernetwork with four times the teacher's modules, and of the"
        ' nonlinear one with 16 times.',
        runs='wider',
    ),
    _part(
        '4B',
        'whole',
        'OOD loss of both hypernetworks is lower with connected than with'
        ' disconnected support.',
    ),
    _part(
        '4C-1',
        'ANIL',
        'OOD loss of both hypernetworks is lower than that of ANIL.',
        **_OF_4C,
    ),
    _part(
        '4C-1',
        '64 examples',
        "The same after the usual 3,000 steps, if each of ANIL's inner steps"
        ' sees 64 examples in place of all 128.',
        runs='anil',
        **_OF_4C,
    ),
    _part(
        'A3',
        'two layers',
        'Two generated layers, K = 2, a teacher with eight inputs, units and'
        ' outputs, after four times the steps: with more modules, both'
        ' hypernetworks need more training tasks to reach a given OOD'
        ' accuracy.',
        runs='two_layers',
        compare=functools.partial(
            appendix.more_tasks_for_more_modules,
            experiment=fig_a3.TWO_LAYERS,
            levels=fig_a3.LEVELS_TWO_LAYERS,
        ),
    ),
    _part(
        'A3',
        'equal students',
        'Students of 40 modules: with ten modules, both hypernetworks need more'
        ' training tasks to reach a given OOD accuracy than with four.',
        runs='students',
        cell=variants.CELL_A3_STUDENTS,
        compare=_more_tasks_at_equal_size,
    ),
    _part(
        'A10',
        'linear',
        'OOD accuracy of the linear hypernetwork, 64 wide, differs by less'
        ' than 0.05 between 8 and 32 modules.',
        models=('linear_hypernetwork',),
    ),
)

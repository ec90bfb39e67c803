"""Beyond the papers: inference in context, predicted, or by gradients.

All learners know the hyperteacher of Figure 3B and infer the same tasks from
the same support sets. Reference lines are what the best predictor reaches that
knows all training functions but composes no modules
(`reference_lines.py`).
"""

from collections.abc import Sequence
import functools

from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.studies.in_context import reference_lines

EXPERIMENT = reference_lines.HYPERTEACHER
TITLE = (
    'Is it better to infer modules in context, by a network, or by gradients?'
)
LEARNERS = tuple(
    learners.Learner(
        name=name,
        infers='in context',
        experiment=EXPERIMENT,
        fields={'model.name': model},
        kind=learners.Kind('in context', '#009E73'),
        decoding='decoding_r2',
    )
    for model, name in (
        ('transformer', 'transformer'),
        ('hypernetwork_transformer', 'transformer with bottleneck'),
    )
)
EXPERIMENTS = (EXPERIMENT, 'fig3b', 'amortised')
# Predictor -> label and dash.
_LINES = {
    'mix': ('best mix of training functions', 'dot'),
    'nearest': ('nearest one', 'dashdot'),
    'mean': ('their mean', 'longdash'),
}


def _rows() -> Sequence[learners.Learner]:
  return [row for row in learners.known() if row.experiment in EXPERIMENTS]


def _lines() -> Sequence[learners.Line]:
  table = reference_lines.MEASURED[EXPERIMENT].load()
  ood = pick.rows(table, {'split': 'ood'})
  means = ood.groupby(['predictor', 'task_support'])['accuracy'].mean()
  return [
      learners.Line(
          *look,
          compositional=means[predictor, 'random'],
          held_out=means[predictor, 'non_compositional'],
      )
      for predictor, look in _LINES.items()
  ]


draw = functools.partial(
    learners.draw,
    comparison=learners.Comparison(
        rows=_rows,
        lines=_lines,
        notes=(
            (
                'Grey: predictors that know all training functions and the'
                ' target, on OOD tasks. The teacher has accuracy 1.'
            ),
        ),
    ),
)

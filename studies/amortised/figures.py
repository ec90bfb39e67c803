"""Beyond the paper: inference by gradients, by a forward pass, or both.

Embeddings of hypernetworks are found by ten gradient steps, predicted from the
support set by an encoder, or predicted and then adapted by a few steps.
"""

import functools
from typing import Any

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.extensions import inference_cost
from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.figures.plotting import style

_EXPERIMENT = 'amortised'
MODELS = style.HYPERNETWORKS
# Way of inference -> prefix of the model's name, inner steps.
INFERENCE = {
    'gradient': ('', 10),
    'amortised': ('amortised_', 0),
    'combined': ('amortised_', 3),
}
CELL = ('model.name', 'model.inner.num_steps', learners.SUPPORT)


def make_cell(inference: str, model: str, support: str) -> dict[str, Any]:
  """Returns the cell of a way of inference, a hypernetwork and a support."""
  prefix, num_steps = INFERENCE[inference]
  return dict(zip(CELL, (f'{prefix}{model}', num_steps, support)))


LEARNERS = tuple(
    learners.Learner(
        name=style.MODEL_NAMES[model].lower(),
        infers=infers,
        experiment=_EXPERIMENT,
        fields=make_cell(inference, model, 'random'),
        kind=learners.Kind('forward pass', '#CC79A7'),
    )
    for inference, infers in (
        ('amortised', 'forward pass'),
        ('combined', 'forward pass, 3 steps'),
    )
    for model in MODELS
)
# The same gradient-adapted runs as Figure 3B's, at any scale.
_ADAPTED = tuple(
    row._replace(
        experiment=_EXPERIMENT, fields=make_cell('gradient', model, 'random')
    )
    for row, model in zip(learners.PAPER, MODELS)
)
_COMPARISON = learners.Comparison(
    rows=lambda: (*_ADAPTED, *LEARNERS),
    preset=None,
    scales=tuple(inference_cost.CALLS),
)
FIGURES = {
    'amortised': described.Figure(
        "Can a network infer a task's modules in one pass?",
        (_EXPERIMENT,),
        functools.partial(learners.draw, comparison=_COMPARISON),
    )
}

"""Figures of this study, and its rows in the comparison of all learners."""

from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.studies.sparse_maml.figures import sparse_maml

FIGURES = sparse_maml.FIGURES
LEARNERS = tuple(
    learners.Learner(
        name=name,
        infers=infers,
        experiment='sparse_maml',
        fields=sparse_maml.cell(gates),
        kind=learners.GRADIENTS,
    )
    for gates, name, infers in (
        ('body', 'BOIL', '10 steps, body'),
        ('binary', 'sparse-MAML', '10 steps, gated'),
        ('rates', 'Meta-SGD', '10 steps, gated'),
    )
)

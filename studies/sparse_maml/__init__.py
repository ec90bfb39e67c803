"""Sparse-MAML: does learning what to adapt help?"""

from modular_hyperteacher.studies import study

STUDY = study.Study(
    package=__name__,
    title='Sparse-MAML',
    paper='von Oswald, Zhao et al. (2021), arXiv:2110.14402',
    configs=('sparse_maml',),
    models={'sparse_maml': f'{__name__}.sparse_maml:make'},
    figures=f'{__name__}.figures:FIGURES',
    claims=f'{__name__}.claims:CLAIMS',
    learners=f'{__name__}.figures:LEARNERS',
    timed={
        'laptop': {
            'sparse_maml': {
                'model.inner.solver': 'sgd',
                'model.inner.num_steps': 10,
            }
        }
    },
)

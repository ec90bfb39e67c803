"""Amortised inference: a forward pass in place of gradient steps."""

from modular_hyperteacher.studies import study

STUDY = study.Study(
    package=__name__,
    title='Amortised inference',
    paper='ours',
    configs=('amortised',),
    models={
        'amortised_linear_hypernetwork': f'{__name__}.amortised:make_linear',
        'amortised_nonlinear_hypernetwork': (
            f'{__name__}.amortised:make_nonlinear'
        ),
    },
    figures=f'{__name__}.figures:FIGURES',
    claims=f'{__name__}.claims:CLAIMS',
    learners=f'{__name__}.figures:LEARNERS',
    timed={'laptop': {'amortised': {}}, 'paper': {'amortised': {}}},
)

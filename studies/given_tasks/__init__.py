"""Networks that are given the task: does scale make them recompose?"""

from modular_hyperteacher.studies import study

STUDY = study.Study(
    package=__name__,
    title='Networks that are given the task',
    paper='Redhardt et al. (2025)',
    configs=('scaling', 'given_or_inferred'),
    tasks={'graded_hyperteacher': f'{__name__}.graded_hyperteacher:make'},
    models={
        'multitask_mlp': f'{__name__}.multitask_mlp:make',
        'multitask_transformer': f'{__name__}.multitask_transformer:make',
    },
    figures=f'{__name__}.figures:FIGURES',
    claims=f'{__name__}.claims:CLAIMS',
    learners=f'{__name__}.figures:LEARNERS',
    timed={
        'laptop': {'given_or_inferred': {'model.name': 'multitask_mlp'}},
    },
)

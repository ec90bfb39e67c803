"""Must one differentiate through learning? Rules for the outer gradient."""

from modular_hyperteacher.studies import study

_RULES = {
    'FirstOrder': ('first_order',),
    'Truncated': ('truncated',),
    'Implicit': ('implicit_cg', 'implicit_neumann', 't1_t2'),
    'Contrastive': (
        'contrastive_standard',
        'contrastive_symmetric',
        'contrastive_second_order',
        'contrastive_rescaled',
        'contrastive_control',
        'linearised_control',
    ),
}

STUDY = study.Study(
    package=__name__,
    title='Outer gradients without unrolling',
    paper='Zucchet*, Schug* et al. (2022), arXiv:2104.01677',
    configs=('cr_training', 'cr_long'),
    models={
        f'proximal_{name}': f'{__name__}.proximal:{name}'
        for name in (
            'linear_hypernetwork',
            'nonlinear_hypernetwork',
            'maml',
            'anil',
        )
    },
    gradients={
        name: f'{__name__}.rules:{kind}'
        for kind, names in _RULES.items()
        for name in names
    },
    figures=f'{__name__}.figures:FIGURES',
    claims=f'{__name__}.claims:CLAIMS',
    learners=f'{__name__}.figures:LEARNERS',
    # All rules adapt in the same way.
    timed={
        'laptop': {
            'cr_training': {
                'model.name': 'proximal_linear_hypernetwork',
                'model.outer.gradient': 'first_order',
            }
        }
    },
)

"""When does training find the modules? The paper's open question."""

from modular_hyperteacher.studies import study

STUDY = study.Study(
    package=__name__,
    title='When does training find the modules?',
    paper='ours',
    configs=('learning_dynamics', 'ld_modules'),
    tasks={'weighted_families': f'{__name__}.world:TASK'},
    # A name of its own, by which a config asks for the measurements.
    models={
        'tracked_student': 'modular_hyperteacher.models.modular_student:make'
    },
    systems=(
        study.System(
            name='tracked',
            module=f'{__name__}.world',
            models=('tracked_student',),
        ),
    ),
    figures=f'{__name__}.figures:FIGURES',
    claims=f'{__name__}.claims:CLAIMS',
)

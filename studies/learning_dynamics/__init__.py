"""When does training find the modules? The paper's open question."""

from modular_hyperteacher.studies import study

STUDY = study.Study(
    package=__name__,
    title='When does training find the modules?',
    paper='ours',
    configs=('learning_dynamics', 'ld_modules'),
    tasks={'weighted_families': f'{__name__}.world:TASK'},
    # The name by which configs call the paper's student, and run ids hash it.
    models={
        'tracked_student': 'modular_hyperteacher.models.modular_student:make'
    },
    figures=f'{__name__}.figures:FIGURES',
    claims=f'{__name__}.claims:CLAIMS',
)

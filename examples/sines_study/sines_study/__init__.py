"""Does a wider readout recompose sines better? See docs/extending.md."""

from modular_hyperteacher.studies import study

STUDY = study.Study(
    package=__name__,
    title='Sums of sines',
    paper='ours',
    configs=('sine_readouts',),
    tasks={'sines': f'{__name__}.task:make'},
    models={'sine_readout': f'{__name__}.model:make'},
    figures=f'{__name__}.results:FIGURES',
    claims=f'{__name__}.results:CLAIMS',
)

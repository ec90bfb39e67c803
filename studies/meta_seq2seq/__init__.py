"""Meta sequence-to-sequence learning (Lake, 2019).

Instead of adapting by gradient steps, the network reads a task's support set
into a memory. Each episode gives words new meanings, which only the support set
reveals. The bilevel system shares everything but the training step: seeds,
devices, checkpoints, results, figures.

Shape legend, in addition to that of `tasks/base.py`:

  E  evaluation episodes            T  tokens of a sequence, EOS included
  N  rows, i.e. pairs of sequences  V  symbols of a vocabulary
  I  items of the support set       H  hidden units
"""

from modular_hyperteacher.studies import study

STUDY = study.Study(
    package=__name__,
    title='Meta sequence-to-sequence learning',
    paper='Lake (2019), arXiv:1906.05381',
    configs=(
        *('scan_me', 'scan_add_jump', 'scan_around_right', 'scan_length'),
        'scan_directions',
    ),
    systems=(
        study.System(
            name='seq2seq',
            module=f'{__name__}.build',
            models=('meta_seq2seq', 'seq2seq'),
            tasks=('mutual_exclusivity', 'scan'),
            world=f'{__name__}.episode_world:EpisodeWorld',
        ),
    ),
    figures=f'{__name__}.figures:FIGURES',
    claims=f'{__name__}.claims:CLAIMS',
    published=f'{__name__}.published',
    discrepancies='discrepancies.csv',
)

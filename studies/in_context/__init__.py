"""In-context learning: transformers that read the examples of a task.

A transformer reads the examples of a task as a sequence and predicts the next
target in one forward pass. It takes one gradient step per batch of fresh tasks;
there is no inner loop. Everything around the training step is shared with the
two loops of the paper: seeds, devices, checkpoints, results.

Shape legend, in addition to that of `tasks/base.py`:

  T  tokens of a sequence           A  attention heads
  E  embedding                      K  features of a head
"""

from modular_hyperteacher.studies import study

STUDY = study.Study(
    package=__name__,
    title='In-context learning',
    paper='Kobayashi et al. (2024); Schug et al. (2025), arXiv:2406.05816',
    configs=(
        *('in_context', 'in_context_sizes', 'in_context_hyperteacher'),
        *('fuzzy_logic', 'sraven'),
    ),
    tasks={
        'modular_regression': f'{__name__}.modular_regression:make',
        'fuzzy_logic': f'{__name__}.fuzzy_logic:make',
        'sraven': f'{__name__}.sraven:make',
    },
    systems=(
        study.System(
            name='in_context',
            module=f'{__name__}.build',
            models=('transformer', 'hypernetwork_transformer'),
        ),
    ),
    figures=f'{__name__}.figures:FIGURES',
    claims=f'{__name__}.claims:CLAIMS',
    learners=f'{__name__}.figures:LEARNERS',
    timed={'laptop': {'in_context_hyperteacher': {}}},
    pictures={
        'fuzzy_logic': f'{__name__}.figures.fuzzy_logic_picture:draw',
        'sraven': f'{__name__}.figures.sraven_picture:draw',
    },
)

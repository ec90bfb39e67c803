"""The command line refuses bad input in one clear line."""

import pathlib

import pytest

from tests.helpers import forks
from tests.helpers import training

_DEFAULT = 'configs/fig3b.py:smoke'

# The first run; else those before it are built first.
_MAML = '--only=model=maml'

_BAD_INPUT = [
    (['--config.training.num_outer_step=5'], 'training.num_outer_steps'),
    (
        ['--config.training.num_outer_steps=abc'],
        "config.training.num_outer_steps is 'abc'; it must be of type int",
    ),
    (['--config.training=3'], 'config.training is a block'),
    (['--config.=3'], 'write --config.FIELD=VALUE, with =.'),
    (
        ['--config.models.maml.outer.final_fraction={[]:1}'],
        r"final_fraction is '\{\[\]:1\}'; it must be of type float",
    ),
    (
        ['--config.models.anil.outer.final_fraction', '0.5'],
        'write --config.models.anil.outer.final_fraction=VALUE',
    ),
    (['--config.task.name=math:pi'], "'math:pi', which is not a function"),
    (
        ['--config.task.name=tests.helpers.odd_tasks:without_valid'],
        "evaluation_splits .* one of them must be 'valid'",
    ),
    (
        ['--config.task.name=tests.helpers.odd_tasks:nothing'],
        'task.name is a function that returns None; it must return a TaskDist',
    ),
    (
        ['--config.task.name=tests.helpers.odd_tasks:without_tuple'],
        "evaluation_splits is 'valid'; it must be a tuple of names",
    ),
    (['--config.task.name=builtins:dict'], 'task.name: no signature found'),
    (
        ['--config.models.maml.inner.num_steps=2147483648', _MAML],
        r'model.inner.num_steps is 2147483648; it must be below 2\*\*31',
    ),
    (
        ['--config.task.name=tests.helpers.odd_tasks:partial'],
        r'a mistake in a partial function \(/.*odd_tasks.py, line \d+\)$',
    ),
    (
        ['--config.task.name=tests.helpers.broken_tasks:make'],
        'cannot be imported: RuntimeError: a mistake on two lines',
    ),
    (['--config.task.max_active=9'], 'task.max_active is 9.*between 1 and'),
    (
        ['--config.task.task_support=conected'],
        "task.task_support is 'conected'; choose one of random",
    ),
    (
        ['--config.task.task_support=connected'],
        'task.max_active is 3; connected support is defined for 2',
    ),
    (
        ['--config.task.fraction_ood=0.001'],
        'task.fraction_ood is 0.001.*at least one of 92 combinations',
    ),
    (
        [
            '--config.training.meta_batch_size=9',
            '--host_devices=2',
        ],
        'meta_batch_size is 9; it must be a multiple of the 2 devices',
    ),
    (['--config.training.seeds=(1, 1)'], r'training.seeds is \(1, 1\)'),
    (
        ['--config.models.maml.inner.eps_root=0.0'],
        r"model.inner.eps_root is 0.0; .*\('model' is config.models.maml.\)",
    ),
    (
        ['--config.models.maml.hidden_dim=0', _MAML],
        'model.hidden_dim is 0; it must be positive',
    ),
    (
        ['--config.models.maml.inner.learning_rate=nan', _MAML],
        'inner.learning_rate is nan; it must be a finite number',
    ),
    (
        ['--config.models.maml.outer.weight_decay=-3.0'],
        'model.outer.weight_decay is -3.0; it must be at least 0',
    ),
    (
        ['--config.models.maml.outer.max_consecutive_skips=-3', _MAML],
        'model.outer.max_consecutive_skips is -3; it must be at least 0',
    ),
    (
        ['--config.task.temperature=nan'],
        'task: temperature is nan; it must be a finite number',
    ),
    (
        ['--config.execution.checkpoint_every_s=-1.0'],
        'execution.checkpoint_every_s is -1.0; it must be at least 0',
    ),
    (['--config.training.prng_impl=rbg'], "prng_impl is 'rbg'; the only"),
    (
        ['--config.training.matmul_precision=half'],
        "matmul_precision is 'half'; choose one of float32, tensorfloat32",
    ),
    (['--config.sweep=5'], "sweep is '5'; it must be a tuple"),
    (['--config.sweep=()'], r'sweep is \(\); .* may be empty'),
    (['--config.sweep=({"model": ()},)'], 'sweep is .* may be empty'),
    (['--config.sweep=({"model": "maml"},)'], 'sweep is .* a tuple of grids'),
    (['--config.sweep=({},)'], 'sweep is .* may be empty'),
    (
        ['--config.sweep=({"task_support": ["random"]},)'],
        "sweep: model is 'None'; choose one of",
    ),
    (
        ['--config.sweep=({"model": ["maml"], "task_suport": ["random"]},)'],
        "no field 'task_suport'; did you mean .*task.task_support",
    ),
    (
        ['--config.sweep=({"model": ["maml"], "learning_rate": [1.0]},)'],
        (
            "'learning_rate' is ambiguous; write model.inner.learning_rate or"
            ' model.o'
        ),
    ),
    (
        ['--config.sweep=({"model": ["maml"], "execution.log_every": [5]},)'],
        "no field 'execution.log_every'",
    ),
    (
        ['--config.training.seeds=(99999999999,)'],
        r'integers from 0 to 2\^32 - 1',
    ),
    (
        ['--config.training.seeds=(True,)'],
        r'training.seeds\[0\] is True; it must be a whole',
    ),
    (['--config.preset=paper'], 'config.preset cannot be set; choose'),
    (['--config.experiment=../x'], 'config.experiment cannot be set; choose'),
    (['--results='], "--results is ''; name a folder"),
    (['--results=\udcff'], "--results is '.*', which cannot be a folder or a"),
    (
        ['--config.models.maml.inner.weight_decay=nan'],
        'inner.weight_decay is nan; it must be a finite number',
    ),
    (
        [
            '--config.models.linear_hypernetwork.modules_per_teacher_module=0',
        ],
        'model.modules_per_teacher_module is 0; it must be positive',
    ),
    (
        ['--config.models.anil.inner.batch_size=None'],
        "batch_size is 'None'; it must be of type int. Only a config file can",
    ),
    (['--only=model=mlp'], "no run has model 'mlp'; choose one of linear"),
    (
        ['--only=task_support=random', '--only=model=mlp'],
        "no run has model 'mlp' and task_support=random; choose one of linear",
    ),
    (['--only=nothing=1'], "'nothing' is not a field"),
    (
        ['--only=num_modules=8'],
        (
            "'num_modules' is ambiguous; write task.num_modules or"
            ' model.num_modules'
        ),
    ),
    (['--only=model'], "--only is 'model'; write field=value"),
    (
        ['--config', 'scan_me:smoke', '--only=model=x'],
        "no run has model 'x'; choose one of meta_seq2seq",
    ),
    (['--unknown=1'], "no flag '--unknown'"),
    (['stray'], "unknown argument 'stray'"),
    (['--host_devices=0'], 'host_devices=0'),
]

_BAD_CONFIGS = [
    ('configs/fig3b.py:huge', "preset is 'huge'; choose one of smoke, lap"),
    ('configs/none.py', 'there is no file configs/none.py'),
    ('fig3e:teachr', "'teachr'; .*paper. Variants of fig3e: longer, teacher"),
    ('fig3e:longer:tiny', "preset is 'tiny'; choose one of smoke, laptop"),
    ('fig3e_longer', 'a variant of fig3e. Write --config=fig3e:longer.'),
    ('configs/fig4b_longer.py:smoke', 'Write --config=fig4b:longer:smoke.'),
    ('configs/scan_me.py', 'Write --config=scan_me.'),
    ('x' * 5000, 'there is no file xxx'),
    ('README.md', r'is not a config; .* SyntaxError: .*README.md, line \d+\)'),
    # Environments of Python 3.12 have no setuptools.
    ('setup.py', 'is not a config; .* (SystemExit|ModuleNotFoundError)'),
    ('', 'there is no file'),
]

_REFUSED = [(_DEFAULT, *case) for case in _BAD_INPUT] + [
    (config, [], message) for config, message in _BAD_CONFIGS
]
_REFUSED.append((
    'sparse_maml:smoke',
    [
        '--config.models.sgd_maml.initial_sparsity=0.3',
        '--config.models.sgd_maml.name=maml',
    ],
    'model.gates does not exist; model has',
))
_REFUSED.append((
    'in_context_hyperteacher:smoke',
    ['--config.task.name=tests.helpers.odd_tasks:without_valid'],
    "evaluation_splits .* one of them must be 'valid'",
))
_REFUSED.append((
    'scan_me:smoke',
    ['--config.execution.task_chunk_size=3'],
    'execution.task_chunk_size is 3; it must be 1',
))


@pytest.fixture(scope='module', name='refusals')
def fixture_refusals(
    tmp_path_factory: pytest.TempPathFactory,
) -> list[tuple[int, str, pathlib.Path]]:
  """Exit code, stderr and results folder of every case of bad input."""
  folder = tmp_path_factory.mktemp('refused')
  done = forks.run(
      folder,
      [
          [f'--config={config}', f'--results={folder}/{i}', *arguments]
          for i, (config, arguments, _) in enumerate(_REFUSED)
      ],
  )
  return [
      (code, stderr, folder / str(i)) for i, (code, stderr) in enumerate(done)
  ]


@pytest.mark.parametrize(
    'index', range(len(_REFUSED)), ids=lambda i: _REFUSED[i][2][:40]
)
def test_bad_input(
    index: int, refusals: list[tuple[int, str, pathlib.Path]]
) -> None:
  code, stderr, results = refusals[index]
  training.assert_refused(code, stderr, _REFUSED[index][2])
  assert len(stderr.strip().splitlines()) == 1
  assert not training.files(results)


def test_unwritable_results(tmp_path: pathlib.Path) -> None:
  blocker = tmp_path / 'file'
  blocker.write_text('kept')
  done = training.run(f'--results={blocker}/results', *training.ONE_RUN)
  message = '--results: cannot write to .*choose a writable'
  training.assert_refused(done.returncode, done.stderr, message)
  assert blocker.read_text() == 'kept'

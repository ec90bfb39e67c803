"""What cannot fit into memory is refused before anything is drawn."""

import contextlib
import pathlib
import re
import time
import types

import jax
import ml_collections
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.configs import fig4c
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.runs import memory
from modular_hyperteacher.runs import runner
from modular_hyperteacher.studies.meta_seq2seq.configs import scan_me
from tests.helpers import forks
from tests.helpers import training

_GIB = 2**30

# Fields of Figure 3B's linear hypernetwork and MAML that no machine has room
# for, or that are no sizes at all.
_ABSURD = [
    ['fig3b', '--only=model=maml', f'--config.{field}={value}']
    for field, value in [
        ('training.meta_batch_size', 10**12),
        ('training.num_evaluation_tasks', 10**12),
        ('training.num_evaluation_tasks', 2**62),
        ('task.num_support', 10**12),
        ('task.num_query', 10**12),
        ('task.input_dim', 10**10),
        ('task.output_dim', 10**10),
        ('task.teacher_hidden_dim', 10**9),
        ('task.teacher_num_hidden', 10**9),
        ('task.num_modules', 10**9),
        ('task.num_standardisation', 10**13),
        ('models.maml.hidden_dim', 10**9),
        ('models.maml.num_hidden', 10**9),
        ('models.maml.inner.num_steps', 10**19),
        ('training.seeds', '(' + '1' * 30 + ',)'),
    ]
] + [
    [config, f'--config.{field}={10**9}']
    for config, field in [
        ('fig3b', 'training.meta_batch_size'),
        ('fig4b', 'task.num_modules'),
        ('fig4b', 'task.num_support'),
        ('fig4b', 'task.num_query'),
        ('fig4b', 'task.num_query_evaluation'),
        ('fig2c', 'task.num_evaluation_query'),
        ('fig2c', 'task.teacher_hidden_dim'),
        ('scan_add_jump', 'models.meta_seq2seq.num_layers'),
        ('scan_add_jump', 'models.meta_seq2seq.hidden_dim'),
        ('in_context', 'models.transformer.body.num_layers'),
        ('in_context', 'task.teacher_hidden_dim'),
        ('in_context_hyperteacher', 'task.num_support'),
        ('fuzzy_logic', 'task.num_support'),
        ('fuzzy_logic', 'task.num_query'),
        ('sraven', 'task.num_values'),
        ('sparse_maml', 'models.sgd_sparse_maml.hidden_dim'),
        ('scaling', 'task.num_modules'),
        ('scaling', 'task.num_support'),
        ('scaling', 'task.teacher_hidden_dim'),
    ]
]


def _plan(
    config: ml_collections.ConfigDict, model: str, root: pathlib.Path
) -> None:
  runs = sweeps.select(sweeps.expand(config), [f'model={model}'])
  (planned,) = runner.plan(runs[:1], root)
  _ = planned.experiment


@pytest.mark.parametrize(
    'module, model, field, value, said',
    [
        (fig3b, 'maml', 'models.maml.hidden_dim', 10**6, 'sizes of model'),
        (
            fig3b,
            'maml',
            'training.meta_batch_size',
            2 * 10**9,
            'meta_batch_size',
        ),
        (fig3b, 'anil', 'task.num_query', 2 * 10**9, 'task.num_query'),
        (
            fig4c,
            'linear_hypernetwork',
            'training.num_evaluation_tasks',
            2 * 10**9,
            'num_evaluation_tasks',
        ),
    ],
)
def test_what_needs_most_is_named(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
    module: types.ModuleType,
    model: str,
    field: str,
    value: int,
    said: str,
) -> None:
  monkeypatch.setattr(memory, '_available', lambda: 16 * _GIB)
  config = module.get_config('smoke')
  _plan(config, model, tmp_path)  # Fits.
  config.update_from_flattened_dict({field: value})
  with pytest.raises(errors.UserError, match=rf'GiB.*{said}'):
    _plan(config, model, tmp_path)
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('module', [fig3b, fig4c, scan_me])
def test_the_bound_is_what_is_there(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
    module: types.ModuleType,
) -> None:
  """Refused with a byte less than the least that a run needs."""
  run = sweeps.expand(module.get_config('smoke'))[0]
  monkeypatch.setattr(jax, 'device_count', lambda: 1)
  (planned,) = runner.plan([run], tmp_path)
  experiment = planned.experiment
  least = sum(memory.reckon(experiment, run.config).values())
  for room, context in (
      (least, contextlib.nullcontext()),
      (least - 1, pytest.raises(errors.UserError)),
  ):
    monkeypatch.setattr(memory, '_available', lambda room=room: room)
    with context:
      memory.check(experiment, run.config)


def test_parameters_count_for_every_seed_and_moment(
    tmp_path: pathlib.Path,
) -> None:
  run = sweeps.select(
      sweeps.expand(fig3b.get_config('laptop')), ['model=maml']
  )[0]
  (planned,) = runner.plan([run], tmp_path)
  needed = memory.reckon(planned.experiment, run.config)
  num_meta, _ = planned.experiment.system.num_params
  (parameters,) = (v for k, v in needed.items() if 'sizes of model' in k)
  # Parameters, two moments and the best so far; 4 bytes; on every device.
  assert parameters % (num_meta * 4 * 4 * 3) == 0
  assert parameters >= num_meta * 4 * 4 * 3


def test_only_fields_that_are_known_to_be_sizes_are_read(
    tmp_path: pathlib.Path,
) -> None:
  """A task of another package may have any others."""
  run = sweeps.expand(fig3b.get_config('smoke'))[0]
  (planned,) = runner.plan([run], tmp_path)
  other = run.config['task'] | {'num_query_kinds': 'a', 'input_dim': [1, 2]}
  needed = memory.reckon(planned.experiment, run.config | {'task': other})
  without = {k: v for k, v in run.config['task'].items() if k != 'input_dim'}
  expected = memory.reckon(planned.experiment, run.config | {'task': without})
  assert needed == expected


@pytest.mark.slow
def test_absurd_sizes_are_refused(tmp_path: pathlib.Path) -> None:
  """In one line, at once, with nothing written."""
  results = tmp_path / 'results'
  started = time.monotonic()
  found = forks.run(
      tmp_path,
      [
          [
              f'--config={config}:smoke',
              f'--results={results}',
              *flags,
          ]
          for config, *flags in _ABSURD
      ],
      'tests.helpers.small_machine',
  )
  assert time.monotonic() - started < 20 * len(_ABSURD)
  for arguments, done in zip(_ABSURD, found, strict=True):
    assert done.code == 2, (arguments, done)
    field = re.search(r'(\w+)=', arguments[-1])
    assert field
    training.assert_refused(done.code, done.stderr, f'{field[1]}|GiB')
  assert not results.exists()

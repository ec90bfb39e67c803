"""Trained models by name, on runs of a few steps."""

from collections.abc import Mapping
import dataclasses
import json
import pathlib
import pickle
import shutil
import subprocess
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher import pretrained
from modular_hyperteacher import randomness
from modular_hyperteacher.analysis import decoding
from modular_hyperteacher.configs import fig2c
from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.pretrained import student
from modular_hyperteacher.pretrained import weights
from modular_hyperteacher.runs import records
from modular_hyperteacher.runs import run_folder
from modular_hyperteacher.tasks import base as tasks
from tests.helpers import built
from tests.helpers import commands
from tests.helpers import slow

_TINY = (
    '--config.task.num_modules=3',
    '--config.task.num_support=6',
    '--config.task.num_query=5',
    '--config.training.seeds=(7,8)',
    '--config.training.num_outer_steps=8',
    '--config.execution.log_every=4',
)


@pytest.fixture(scope='module', name='root')
def fixture_root(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
  """Two finished runs of two seeds, and a bundle of them."""
  root = tmp_path_factory.mktemp('trained')
  done = commands.python(
      *('-m', 'modular_hyperteacher.main', '--config=configs/fig3b.py:smoke'),
      *(f'--results={root / "own"}', '--only=model=linear_hypernetwork'),
      *_TINY,
  )
  assert done.returncode == 0, done.stderr
  _bundle(root, root / 'small', '--parameters')
  return root


def _bundle(
    root: pathlib.Path,
    output: pathlib.Path,
    *arguments: str,
    returncode: int = 0,
) -> subprocess.CompletedProcess[str]:
  done = commands.python(
      *('figures/bundle.py', f'--results={root / "own"}', '--preset=smoke'),
      *('--experiment=fig3b', f'--output={output}', *arguments),
  )
  assert done.returncode == returncode, done.stderr
  return done


def _load(
    root: pathlib.Path, source: str = 'own', **fields: Any
) -> pretrained.Pretrained:
  """Loads from the run itself, or from the bundle alone."""
  own = root / ('own' if source == 'own' else 'nothing')
  fields = {'task_support': 'random', **fields}
  return pretrained.load(
      'fig3b/smoke', results_root=own, bundled_root=root / 'small', **fields
  )


@pytest.mark.parametrize('seed', slow.mark([7, 8], [8]))
def test_what_is_loaded_gives_the_results_that_the_run_reported(
    root: pathlib.Path, seed: int
) -> None:
  loaded = _load(root)
  summary = run_folder.RunFolder(
      next(root.glob(f'own/*/*/{loaded.run_id}'))
  ).read('summary.json', records.Summary)
  assert summary is not None
  index = summary['seeds'].index(seed)
  reported = {
      split: {
          name: per_seed[index]
          for name, per_seed in metrics.items()
          if not name.startswith('r2')  # Of an analysis.
      }
      for split, metrics in summary['last'].items()
      if split != 'train'
  }
  _assert_close(loaded.student(seed).evaluate(), reported)


@pytest.mark.parametrize('seed', slow.mark([7, 8], [7]))
def test_a_bundle_gives_the_results_of_rounded_parameters(
    root: pathlib.Path, seed: int
) -> None:
  # How far rounding moves results depends on the processor, so they are those
  # of the run's own parameters, rounded.
  own = _load(root).student(seed)
  rounded = dataclasses.replace(own, meta_params=_round(own.meta_params))
  loaded = _load(root, 'bundled').student(seed)
  _assert_close(loaded.evaluate(), rounded.evaluate())


def _round(meta_params: Any) -> Any:
  return jax.tree.map(
      lambda x: np.asarray(x, np.float16).astype(np.float32), meta_params
  )


def _assert_close(
    evaluated: Mapping[str, Mapping[str, float]],
    expected: Mapping[str, Mapping[str, float | None]],
) -> None:
  assert evaluated and evaluated.keys() == expected.keys()
  for split, metrics in evaluated.items():
    assert metrics and metrics.keys() == expected[split].keys()
    for name, value in metrics.items():
      value_expected = expected[split][name]
      if value_expected is None:  # An empty split.
        assert np.isnan(value)
      else:
        np.testing.assert_allclose(value, value_expected, rtol=2e-4, atol=1e-5)


def test_a_shared_run_is_found_by_either_name() -> None:
  """Figure A4's run of 32 shots is Figure 3B's, and bundled there."""
  of_a4 = pretrained.load(
      'fig_a4/laptop',
      results_root='nothing',
      model='linear_hypernetwork',
      max_active=3,
      num_support=32,
  )
  of_3b = pretrained.load(
      'fig3b/laptop',
      results_root='nothing',
      model='linear_hypernetwork',
      task_support='random',
  )
  assert of_a4.run_id == of_3b.run_id and of_a4.folder == of_3b.folder
  for name in ('common/laptop', 'fig3b/publisht'):
    with pytest.raises(errors.UserError, match=f"no .* parameters of '{name}"):
      pretrained.load(name, results_root='nothing')


def test_a_shared_run_of_other_seeds_is_found(tmp_path: pathlib.Path) -> None:
  """Its id is another then: the condition and the seeds count."""
  for seeds in ((2020, 2021, 2022), (2020,), (2022, 7)):
    config = fig3b.get_config('laptop')
    config.training.seeds = seeds
    (run,) = sweeps.select(
        sweeps.expand(config),
        ['model=linear_hypernetwork', 'task_support=random'],
    )
    folder = tmp_path / 'fig3b' / 'laptop' / run.run_id
    (folder / 'checkpoints').mkdir(parents=True)
    (folder / 'checkpoints' / '1.npz').touch()
    (folder / 'config.json').write_text(json.dumps(run.config))
    (folder / 'summary.json').write_text('{}')
  fields = {'model': 'linear_hypernetwork', 'max_active': 3, 'num_support': 32}
  with pytest.raises(errors.UserError, match='^2 runs .* seeds: .*7]'):
    pretrained.load(
        'fig_a4/laptop',
        results_root=tmp_path,
        bundled_root=tmp_path / 'no',
        **fields,
    )
  with pytest.raises(errors.UserError, match=f'{run.run_id}/.* is damaged'):
    pretrained.load(
        'fig_a4/laptop',
        results_root=tmp_path,
        bundled_root=tmp_path / 'no',
        seeds=(2022, 7),
        **fields,
    )


def test_a_bundle_holds_what_was_trained(root: pathlib.Path) -> None:
  own, bundled = (_load(root, source) for source in ('own', 'bundled'))
  rounded = _round(own.meta_params)
  jax.tree.map(np.testing.assert_array_equal, rounded, bundled.meta_params)
  assert jax.tree.leaves(bundled.meta_params)[0].dtype == np.float32
  assert str(root / 'small') in str(_load(root, 'bundled').folder)


def test_other_tasks_than_those_of_training_are_told(
    root: pathlib.Path,
) -> None:
  drawn = _load(root, 'own').drawn
  assert set(drawn) == {'7', '8'} and _load(root, 'bundled').drawn == drawn
  loaded = _load(root)
  other = dataclasses.replace(
      loaded, drawn={'7': drawn['7'] | {'exact': '', 'jax': '0.9'}}
  )
  with pytest.warns(UserWarning, match='trained on other tasks.*JAX was 0.9'):
    other.student()
  for path in plugins.bundled_roots()[0].glob('*/*/parameters'):
    for entry in weights.read_index(path).values():
      assert list(entry['drawn']) == list(map(str, entry['seeds']))


def test_a_student_in_another_process(root: pathlib.Path) -> None:
  """A process that is started by 'spawn' gets a pickle."""
  trained = _load(root).student(8)
  again = pickle.loads(pickle.dumps(trained))
  loaded = pickle.loads(pickle.dumps(_load(root)))
  for other in (again, loaded.student(8)):
    seed: Any = np.int64(3)
    task, same = (s.sample('ood', seed) for s in (trained, other))
    jax.tree.map(np.testing.assert_array_equal, task, same)
    jax.tree.map(
        np.testing.assert_array_equal,
        trained.adapt(task.support),
        other.adapt(task.support),
    )


def test_keys_and_seeds_of_tasks(root: pathlib.Path) -> None:
  trained = _load(root).student()
  task = trained.sample('ood', jax.random.key(3))
  for key in (3, jax.random.PRNGKey(3)):
    same = trained.sample('ood', key)
    jax.tree.map(np.testing.assert_array_equal, task, same)
  wrong: Any = 1.5
  for key in (
      wrong,
      jax.random.key(3, impl='rbg'),
      jax.random.split(jax.random.key(3), 2),
  ):
    with pytest.raises(errors.UserError, match='key is .*; it must be a seed'):
      trained.sample('ood', key)
  with pytest.raises(errors.UserError, match='key is -1; a seed must be at'):
    trained.sample('ood', -1)


def test_nan_among_examples_is_told(root: pathlib.Path) -> None:
  inputs = np.zeros((20, 8), np.float32)
  inputs[3, 2] = np.nan
  support = tasks.examples(inputs, jnp.full((20, 8), 1 / 8))
  with pytest.warns(
      UserWarning, match="set's inputs: 1 of 160 numbers are NaN"
  ):
    _load(root).student().adapt(support)


@pytest.mark.slow
def test_adaptation_is_that_of_the_learner(root: pathlib.Path) -> None:
  trained = _load(root).student(8)
  task = trained.sample('ood', jax.random.key(3))
  adapted = trained.adapt(task.support)
  before = trained.experiment.model.init_fast(trained.meta_params)
  losses = [
      float(trained.score(fast, task.support)['loss'])
      for fast in (before, adapted)
  ]
  assert losses[1] < losses[0]
  metrics, _ = trained.experiment.learner.evaluate_task(
      trained.meta_params, trained.task_params, task, trained.root
  )
  np.testing.assert_allclose(
      losses,
      [metrics['support_loss_before'], metrics['support_loss_after']],
      rtol=1e-4,
  )
  outputs = trained.predict(adapted, task.query.inputs)
  labels = task.query.targets.argmax(-1)
  assert trained.score(adapted, task.query)['accuracy'] == pytest.approx(
      (outputs.argmax(-1) == labels).mean()
  )


def test_a_support_set_of_ones_own(root: pathlib.Path) -> None:
  """Adapting to any inputs and targets makes these targets likelier."""
  trained = _load(root).student()
  inputs = jax.random.normal(jax.random.key(1), (20, 8))
  targets = jax.nn.one_hot(jnp.full(20, 2), 8)
  fast_params = trained.adapt(tasks.examples(inputs, targets))
  probability = jax.nn.softmax(trained.predict(fast_params, inputs))[:, 2]
  start = trained.experiment.model.init_fast(trained.meta_params)
  at_first = jax.nn.softmax(trained.predict(start, inputs))[:, 2]
  assert probability.mean() > at_first.mean()


def test_support_sets_of_another_form_are_told(root: pathlib.Path) -> None:
  trained = _load(root).student()
  inputs, targets = jnp.zeros((20, 8)), jnp.zeros((20, 8))
  wrong: Any = inputs
  for support, told in (
      (wrong, 'not ArrayImpl; make one with tasks.base.examples'),
      (
          tasks.examples(inputs[:, :3], targets),
          r'inputs is \[20, 3\].*\[N, 8\]',
      ),
      (tasks.examples(inputs, targets[:, 0]), r'targets is \[20\].*\[N, 8\]'),
      (tasks.examples(inputs, targets[:1]), r'N of .* is \[1, 20\]; .* same'),
  ):
    with pytest.raises(errors.UserError, match=told):
      trained.adapt(support)


def test_the_decoder_is_the_one_of_the_analysis(root: pathlib.Path) -> None:
  """On a task that it was fitted on, drawn and adapted to by hand."""
  trained = _load(root).student(7)
  split_index = trained.splits.index('test') - 1
  key = jax.random.split(
      randomness.stream(trained.root, 'evaluation'),
      len(trained.evaluation_latents),
  )[split_index]
  latents = trained.evaluation_latents[split_index]
  fast_params = []
  for latent, task_key in zip(latents, jax.random.split(key, len(latents))):
    example_key, adapt_key = jax.random.split(task_key)
    drawn = trained.experiment.task.sample_examples(
        trained.task_params, example_key, latent, 'test'
    )
    fast_params.append(
        trained.adapt(tasks.Task(drawn[0], drawn[1], latent), adapt_key)
    )
  features = np.stack([
      np.concatenate([x.ravel() for x in jax.tree.leaves(fast)])
      for fast in fast_params
  ])
  expected = decoding.predict(decoding.fit(features, latents), features)
  decoded = trained.fit_decoder()(fast_params[2])
  assert decoded.shape == latents.shape[1:]
  np.testing.assert_allclose(decoded, expected[2], rtol=1e-3, atol=1e-3)


def test_other_seeds_are_other_worlds(root: pathlib.Path) -> None:
  loaded = _load(root)
  worlds = [loaded.student(s).task_params.generator for s in (7, 8)]
  assert not np.allclose(*worlds)
  assert loaded.seeds == (7, 8)


def test_a_run_can_be_named_by_its_folder(root: pathlib.Path) -> None:
  loaded = _load(root)
  (folder,) = root.glob(f'own/*/*/{loaded.run_id}')
  again = pretrained.load(folder, kind='best_validation')
  assert again.run_id == loaded.run_id
  assert again.kind == 'best_validation'


def test_a_tilde_is_the_home_folder(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.setenv('HOME', str(root))
  found = pretrained.available('~/own', root / 'nothing')
  assert len(found) == 2
  name = f'fig3b/smoke/{found["run_id"].iloc[0]}'
  for loaded in (
      pretrained.load(name, results_root='~/own'),
      pretrained.load(f'~/own/{name}'),
  ):
    assert loaded.folder == root.resolve() / 'own' / name
  with pytest.raises(errors.UserError, match="results_root is '~no one/x'"):
    pretrained.available('~no one/x')


def test_a_changed_config_is_noticed(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
  (folder,) = root.glob(f'own/*/*/{_load(root).run_id}')
  copy = tmp_path / folder.name
  shutil.copytree(folder, copy)
  path = copy / 'config.json'
  config = json.loads(path.read_text())
  config['task']['fraction_ood'] = 0.5
  path.write_text(json.dumps(config))
  with pytest.raises(errors.UserError, match=folder.name):
    pretrained.load(copy)


@pytest.mark.slow
def test_some_seeds_of_some_runs_can_be_bundled(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
  arguments = ('--only=task_support=random', '--num_seeds=1', '--parameters')
  done = _bundle(root, tmp_path, *arguments)
  assert 'Parameters of all bundles: 0.' in done.stdout
  found = pretrained.available(tmp_path / 'nothing', tmp_path)
  assert found['seeds'].tolist() == [(7,)]
  loaded = pretrained.load(
      'fig3b/smoke', results_root=tmp_path / 'nothing', bundled_root=tmp_path
  )
  whole = _load(root, 'bundled').meta_params
  jax.tree.map(
      lambda part, all_: np.testing.assert_array_equal(part, all_[:1]),
      loaded.meta_params,
      whole,
  )
  wrong = ('--parameters', '--only=modle=anil')
  refused = _bundle(root, tmp_path, *wrong, returncode=2)
  assert "'modle' is not a field" in refused.stderr
  assert len(list(tmp_path.rglob('*.npz'))) == 1  # Nothing is lost.
  without = '--without=task_support=random'
  _bundle(root, tmp_path, '--parameters', without)
  for _ in range(2):  # Those of runs with the same results stay.
    found = pretrained.available(tmp_path / 'nothing', tmp_path)
    seeds = found.set_index('run_id')['seeds']
    assert seeds.filter(like='random').tolist() == [(7,)]
    assert seeds.filter(like='non_comp').tolist() == [(7, 8)]
    assert 'removed' not in _bundle(root, tmp_path).stdout


def test_damaged_parameters_are_not_loaded(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
  shutil.copytree(root / 'small', tmp_path, dirs_exist_ok=True)
  loaded = _load(root)
  path = tmp_path / 'fig3b/smoke/parameters' / f'{loaded.run_id}.npz'
  with np.load(path) as file:
    arrays = dict(file)
  name = next(iter(arrays))
  np.savez(path, **(arrays | {name: arrays[name] + 1}))
  where: dict[str, Any] = {
      'bundled_root': tmp_path,
      'results_root': tmp_path / 'nothing',
      'task_support': 'random',
  }
  with pytest.raises(errors.UserError, match='does not hold the parameters of'):
    pretrained.load('fig3b/smoke', **where)
  path.write_bytes(b'no longer an archive')
  with pytest.raises(errors.UserError, match='cannot be read'):
    pretrained.load('fig3b/smoke', **where)


def test_runs_of_one_model_are_told_apart_by_its_fields(
    tmp_path: pathlib.Path,
) -> None:
  for run in sweeps.described_runs('fig3b', 'laptop'):
    support = run.config['task']['task_support']
    if (run.config['model']['name'], support) == ('maml', 'random'):
      folder = tmp_path / 'fig3b' / 'laptop' / run.run_id
      (folder / 'checkpoints').mkdir(parents=True)
      (folder / 'checkpoints' / '1.npz').touch()
      (folder / 'config.json').write_text(json.dumps(run.config))
      (folder / 'summary.json').write_text('{}')
  with pytest.raises(errors.UserError, match='add one of hidden_dim: .*218'):
    pretrained.load(
        'fig3b/laptop', results_root=tmp_path, bundled_root=tmp_path / 'no'
    )


@pytest.mark.parametrize(
    'name, fields, message',
    [
        ('fig9/smoke', {}, "'fig9/smoke', only of fig3b/smoke.$"),
        ('fig3b/big', {}, "'fig3b/big', only of fig3b/smoke.$"),
        ('fig3c/smoke', {}, 'only of fig3b/smoke. python -m .*fig3c.py:smoke'),
        (
            'fig3b/smoke',
            {'task_support': 'randm'},
            'no run of fig3b/smoke has task_s.*; choose one of non_comp.*, r',
        ),
        (
            'fig3b/smoke',
            {},
            "2 runs of fig3b/smoke match; .* task_support: 'non",
        ),
        ('fig3b/smoke', {'run_id': 'maml-1'}, "has run_id 'maml-1'; choose"),
        (
            'fig3b/smoke',
            {'spport': 3},
            "'spport' is not a field of a run of fig3b/smoke; did you mean",
        ),
        (
            'fig3b/smoke',
            {'weight_decay': 3},
            'is ambiguous; write model.inner.weight_dec',
        ),
        (
            'fig3b/smoke',
            {'training.seeds': (7, 8), 'clip_norm': 1},
            '2 runs of fig3b/smoke match; add one of',
        ),
        ('fig3b/smoke', {'kind': 'first'}, 'choose one of last, best_val'),
    ],
    ids=str,
)
def test_what_is_not_there_is_told_with_what_is(
    root: pathlib.Path, name: str, fields: dict[str, Any], message: str
) -> None:
  with pytest.raises(errors.UserError, match=message):
    pretrained.load(
        name,
        results_root=root / 'own',
        bundled_root=root / 'small',
        **fields,
    )


def test_what_a_student_cannot_do_is_told(root: pathlib.Path) -> None:
  loaded = _load(root, 'bundled')
  with pytest.raises(errors.UserError, match='seed is 3; .* has 7, 8'):
    loaded.student(3)
  with pytest.raises(errors.UserError, match="split is 'odd'; choose one of"):
    loaded.student().sample('odd', jax.random.key(0))
  with pytest.raises(errors.UserError, match="only 'last' is bundled"):
    _load(root, 'bundled', kind='best_validation')


def test_parameters_that_are_lost_are_told_and_not_copied(
    tmp_path: pathlib.Path,
) -> None:
  source, target = tmp_path / 'source', tmp_path / 'target'
  params = {'bank': np.ones((1, 2))}
  weights.write(source, 'run', kind='last', seeds=[1], meta_params=params)
  weights.copy(source, target, {'run', 'other'})
  np.testing.assert_array_equal(
      weights.read(target, 'run', params)['bank'], params['bank']
  )
  (source / 'run.npz').unlink()
  with pytest.raises(errors.UserError, match='run.npz is missing'):
    weights.copy(source, tmp_path / 'other', {'run'})
  assert not weights.read_index(tmp_path / 'other')


def test_bundled_parameters_belong_to_bundled_runs() -> None:
  """Of the repository: each is of a run beside it, and loads."""
  for _, row in pretrained.available('/nowhere').iterrows():
    loaded = pretrained.load(
        row['name'], results_root='/nowhere', run_id=row['run_id']
    )
    assert loaded.run_id == row['run_id'] and loaded.seeds == row['seeds']
    leaves = jax.tree.leaves(loaded.meta_params)
    assert all(np.isfinite(leaf).all() for leaf in leaves)
  roots = plugins.bundled_roots()
  files = [path for r in roots for path in r.glob('*/*/parameters/*')]
  assert 0 < sum(path.stat().st_size for path in files) <= 10_000_000


@pytest.mark.slow
def test_bundled_parameters_give_the_bundled_results() -> None:
  """One seed of Figure 3B's, on all evaluation tasks."""
  loaded = pretrained.load(
      'fig3b/laptop',
      model='linear_hypernetwork',
      task_support='random',
      results_root='/nowhere',
  )
  evaluated = loaded.student(2020).evaluate()
  table = pd.read_csv(
      plugins.bundled_roots()[0] / 'fig3b/laptop/results.csv.gz'
  )
  reported = table[
      (table['run_id'] == loaded.run_id)
      & (table['seed'] == 2020)
      & (table['kind'] == 'last')
  ].set_index(['split', 'metric'])['value']
  for split in ('test', 'ood', 'ood_k8'):
    for metric, tolerance in (('accuracy', 2e-3), ('loss', 1e-3)):
      assert evaluated[split][metric] == pytest.approx(
          reported[split, metric], abs=tolerance
      )


@pytest.mark.slow
def test_the_example_runs(root: pathlib.Path) -> None:
  done = commands.python(
      *('examples/pretrained.py', '--name=fig3b/smoke'),
      '--results=~/own',
      HOME=str(root),
  )
  assert done.returncode == 0, done.stderr
  assert 'accuracy 0.' in done.stdout and 'decoded [' in done.stdout


@pytest.mark.slow
def test_a_run_can_be_drawn(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
  arguments = ('-m', 'figures.render', '--run=fig3b/smoke', '--seed=4')
  arguments += ('--results=~/own', f'--output={tmp_path}')
  done = commands.python(
      *arguments, '--model=linear_hypernetwork', HOME=str(root)
  )
  assert done.returncode == 0, done.stderr
  (page,) = tmp_path.glob('random-linear_hypernetwork-*_ood_4.html')
  assert 'Linear hypernetwork in a task of hyperteacher' in page.read_text()
  done = commands.python(
      *arguments,
      *('--model=linear_hypernetwork', '--world=goals'),
      HOME=str(root),
  )
  assert done.returncode == 2
  assert done.stderr == (
      "error: --world is 'goals'; the run's is 'hyperteacher'.\n"
  )


@pytest.mark.slow
def test_a_student_that_draws_fresh_examples_needs_the_task() -> None:
  """The theory's, before any training."""
  run = next(
      run
      for run in sweeps.expand(fig2c.get_config('smoke'))
      if run.config['model']['inner']['fresh_support']
  )
  experiment = built.bilevel_experiment(run.config)
  root = build.root_keys(experiment.training)[0]
  untrained = student.Student(
      run.config,
      experiment,
      run.config['training']['seeds'][0],
      *build.draw_tasks(experiment)[0],
      experiment.model.init(root),
  )
  task = untrained.sample('ood', root)
  with pytest.raises(errors.UserError, match='adapt it to a drawn task'):
    untrained.adapt(task.support)
  fast_params = untrained.adapt(task)
  assert np.isfinite(untrained.score(fast_params, task.query)['loss'])

"""The weighted families, and what is measured while students learn them."""

import collections
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.analysis import alignment
from modular_hyperteacher.analysis import base as analyses
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.learning import programs
from modular_hyperteacher.models import modular_student
from modular_hyperteacher.studies.learning_dynamics import supports
from modular_hyperteacher.studies.learning_dynamics import world
from modular_hyperteacher.tasks import teacher_student

_FIELDS: dict[str, Any] = {
    'num_modules': 6,
    'task_support': 'singles_ring',
    'latent_type': 'discrete',
    'sampler': 'released',
    'input_dim': 4,
    'output_dim': 2,
    'teacher_hidden_dim': 3,
    'num_support': 8,
    'num_query': 8,
    'num_evaluation_query': 8,
}
_STUDENT = {'input_dim': 4, 'output_dim': 2, 'hidden_dim': 5, 'num_modules': 8}
_CONFIGS = ('learning_dynamics', 'ld_modules')


@pytest.mark.parametrize('latent_type', ['discrete', 'continuous'])
def test_named_supports_give_the_tasks_of_the_paper(latent_type: str) -> None:
  fields: dict[str, Any] = {**_FIELDS, 'latent_type': latent_type}
  ours, papers = world.make(**fields), teacher_student.make(**fields)
  key = jax.random.key(0)
  params = ours.init(key)
  for split in ('train', 'valid', 'test', 'ood'):
    for a, b in zip(
        jax.tree.leaves(ours.sample(params, key, split)),
        jax.tree.leaves(papers.sample(params, key, split)),
        strict=True,
    ):
      np.testing.assert_array_equal(a, b)
    assert ours.num_combinations(params, split) == papers.num_combinations(
        params, split
    )


def test_families_are_drawn_as_often_as_they_are_listed() -> None:
  task = world.make(**{**_FIELDS, 'task_support': 'singles_ring_3'})
  keys = jax.random.split(jax.random.key(1), 20_000)
  drawn = jax.vmap(lambda key: task.sample_latent(None, key, 'train'))(keys)
  active = collections.Counter((np.asarray(drawn)[:, 0] > 0).sum(1).tolist())
  assert set(active) == {1, 2}
  assert active[2] / active[1] == pytest.approx(3, rel=0.1)


def test_every_family_has_a_split_with_continuous_latents() -> None:
  task = world.make(**_FIELDS)
  assert len(task.evaluation_splits) == 3 + 12
  keys = jax.random.split(jax.random.key(2), 50)
  latents = jax.vmap(
      lambda key: task.sample_latent(None, key, 'ood_family_01')[0]
  )(keys)
  assert (latents[:, :2] >= 0.5).all() and not latents[:, 2:].any()
  assert len(np.unique(latents[:, 0])) > 40


def test_unknown_supports_are_refused() -> None:
  with pytest.raises(errors.UserError, match='task.task_support is .*ringg'):
    world.make(**{**_FIELDS, 'task_support': 'ringg'})


def test_alignment_is_the_papers_and_decoding_is_by_module() -> None:
  keys = jax.random.split(jax.random.key(3), 4)
  teacher = teacher_student.init_modular(keys[0], 6, 4, 3, 2)
  student = jax.random.normal(keys[1], (8, 4, 5))
  latents = jax.random.normal(keys[2], (2, 40, 6))
  # Well conditioned: the released solver stops early, whatever is left.
  mix = jnp.linalg.qr(jax.random.normal(keys[3], (8, 8)))[0][:6]
  inferred = latents @ mix + 0.1 * jax.random.normal(keys[0], (2, 40, 8))
  adapted = analyses.Adapted(
      teacher,
      {'modules': student},
      {s: np.asarray(x)[:, None] for s, x in zip(('test', 'ood'), latents)},
      {s: np.asarray(x) for s, x in zip(('test', 'ood'), inferred)},
      jax.random.key(4),
  )
  task, model = world.make(**_FIELDS), modular_student.make(**_STUDENT)
  (make,) = world.TASK.make_analyses
  analysis = make(task, model)
  assert analysis.splits == ('test', 'ood') and analysis.always
  papers = alignment.make_analysis(task, model).measure(adapted)
  for split, found in analysis.measure(adapted).items():
    assert found.items() >= papers[split].items()
    r2 = [found[f'decoding_r2_m{m}'] for m in range(6)]
    np.testing.assert_allclose(np.mean(r2), found['latent_r2'], rtol=1e-4)
    assert len({round(x, 6) for x in r2}) == 6


@pytest.mark.slow
def test_a_step_is_taken_and_measured() -> None:
  """At every evaluation, with tasks divided over devices."""
  run = sweeps.described_runs('learning_dynamics', 'smoke')[0]
  devices = jax.device_count()
  small = {'num_support': 16, 'num_query': 16, 'num_evaluation_query': 16}
  sizes = {'meta_batch_size': devices, 'num_evaluation_tasks': 4 * devices}
  config = {
      **run.config,
      'task': run.config['task'] | small,
      'training': run.config['training'] | sizes,
  }
  built = build.build(config, devices)
  roots, drawn = build.root_keys(built.training), build.draw_tasks(built)
  compiled = programs.Programs(built.system, roots, drawn, optimise=False)
  state, _ = compiled.train(compiled.init(), 1)
  metrics, adapted = compiled.evaluate(state.meta_params)
  metrics = programs.fetch(metrics)
  assert np.isfinite(metrics['pooled_relative_loss']).all()
  analyse = programs.over_seeds(built.system.analyse, drawn, roots)
  assert analyse is not None
  analysed = analyse(
      programs.fetch(state.meta_params), programs.fetch_divided(adapted)
  )
  assert [*analysed] == ['test', 'ood']
  for by_name in analysed.values():
    assert np.isfinite(by_name['alignment']).all()
    assert np.isfinite(by_name['decoding_r2_m5']).all()
  jax.clear_caches()


@pytest.mark.parametrize('preset', presets.PRESETS)
@pytest.mark.parametrize('name', _CONFIGS)
def test_all_runs_can_be_built(name: str, preset: str) -> None:
  runs = sweeps.described_runs(name, preset)
  assert len({run.run_id for run in runs}) == len(runs)
  for run in runs:
    assert (run.experiment, run.preset) == (name, preset)
    built = build.build(run.config, 1)
    assert 'valid' in built.system.evaluation_splits
    assert built.system.analysed_always == (name == 'learning_dynamics')
  if preset != 'smoke':
    assert all(len(run.config['training']['seeds']) == 5 for run in runs)
  if name == 'learning_dynamics' and preset != 'smoke':
    conditions = {
        (run.config['task']['latent_type'], run.config['task']['task_support'])
        for run in runs
    }
    assert conditions == set(supports.RUNS)

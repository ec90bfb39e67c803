"""Naming terms from codes: fit, score, and what a run records."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from modular_hyperteacher import randomness
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.learning import programs
from modular_hyperteacher.studies.in_context import fuzzy_logic
from modular_hyperteacher.studies.in_context import naming
from modular_hyperteacher.studies.in_context import system as systems
from modular_hyperteacher.studies.in_context.configs import (
    fuzzy_logic as fuzzy_config,
)
from modular_hyperteacher.studies.in_context.configs import in_context
from tests.studies.in_context import learner_test
from tests.studies.in_context import models_test

_NUM_TASKS = 32
_WORLD = fuzzy_logic.make(
    num_variables=3, num_active=2, ood_fraction=0.3, num_support=5, num_query=1
)


def _draw(num_tasks: int = 400) -> np.ndarray:
  """Returns latents [len(KEPT), tasks, 6] of two terms each."""
  rng = np.random.default_rng(0)
  latents = np.zeros((len(naming.TERMS.kept), num_tasks, 6))
  for row in latents.reshape(-1, 6):
    row[rng.choice(6, 2, replace=False)] = 1
  return latents


def test_the_fit_is_the_least_penalised_loss() -> None:
  """Its gradient is zero, by finite differences of the loss written out."""
  rng = np.random.default_rng(1)
  x, labels = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)

  def loss(weights: np.ndarray) -> float:
    total = 0.5 * np.sum(weights[:-1] ** 2)
    for row, label in zip(x, labels):
      logits = row @ weights[:-1] + weights[-1]
      total += np.log(np.exp(logits).sum()) - logits[label]
    return float(total)

  weights = naming.fit(x, labels, 3)
  for index in np.ndindex(*weights.shape):
    step = np.zeros_like(weights)
    step[index] = 1e-4
    slope = (loss(weights + step) - loss(weights - step)) / 2e-4
    assert abs(slope) < 1e-2


def test_classes_without_examples_are_never_named() -> None:
  rng = np.random.default_rng(2)
  x, labels = rng.normal(size=(50, 2)), rng.integers(0, 2, 50) * 3
  predicted = naming.predict(naming.fit(x, labels, 5), x)
  assert set(predicted) <= {0, 3}


def test_f1_written_out() -> None:
  truth, predicted = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1])
  # Class 0: precision 1, recall 1/2. Class 1: 1/3 and 1. Class 2: never named.
  assert naming.macro_f1(truth, predicted) == pytest.approx((2 / 3 + 1 / 2) / 3)
  assert naming.macro_f1(truth, truth) == 1


def test_terms_are_in_ascending_order() -> None:
  latents = np.array([[[0, 1, 0, 1], [1, 0, 1, 0]]])
  np.testing.assert_array_equal(
      naming.name_classes(latents), [[[1, 3], [0, 2]]]
  )


def test_codes_that_spell_the_terms_name_them_and_noise_does_not() -> None:
  latents = _draw()
  noise = np.random.default_rng(3).normal(size=latents.shape)
  places = naming.name_classes(latents)
  spelt = np.eye(6)[places].reshape(*latents.shape[:2], -1)
  codes = np.stack([np.pad(noise, ((0, 0), (0, 0), (0, 6))), spelt], 2)
  found = naming.measure(naming.TERMS, codes, latents)
  for split in naming.TERMS.scored:
    assert found[split][naming.TERMS.metric(1)] > 0.99
    assert found[split][naming.TERMS.metric(0)] < 0.3
    assert found[split][naming.TERMS.majority] < 0.2


def test_codes_of_a_seed_that_diverged_name_nothing() -> None:
  latents = _draw()
  codes = np.ones((*latents.shape[:2], 2, 3))
  codes[0, 0, 1, 0] = np.nan
  found = naming.measure(naming.TERMS, codes, latents)['ood_fixed_context']
  assert np.isfinite(found[naming.TERMS.metric(0)])
  assert np.isnan(found[naming.TERMS.metric(1)])


def test_always_naming_the_most_frequent_term() -> None:
  """Of 10 tasks, 6 have term 0 first: F1 0.75 for it, 0 for the others."""
  latents = np.zeros((len(naming.TERMS.kept), 10, 4))
  latents[:, :6, 0] = latents[:, 6:9, 1] = latents[:, 9:, 2] = 1
  latents[:, :, 3] = 1
  codes = np.zeros((len(naming.TERMS.kept), 10, 1, 2))
  found = naming.measure(naming.TERMS, codes, latents)['ood_fixed_context']
  assert found[naming.TERMS.majority] == pytest.approx((0.75 / 3 + 1) / 2)
  assert found[naming.TERMS.metric(0)] == pytest.approx(
      found[naming.TERMS.majority]
  )


def test_rules_are_named_token_by_token() -> None:
  """With a code for each feature of an instance, and a rule for each code."""
  rng = np.random.default_rng(3)
  splits = ('valid', 'valid_unpermuted', 'ood_unpermuted')
  rules = rng.integers(0, 8, (len(splits), 300, 2))
  latents = np.eye(8)[rules]
  codes = rng.normal(size=(2, 300, 2, 2, 8))
  codes[..., 1, :] = 5 * latents[1:] + 0.1 * codes[..., 1, :]
  analyse = naming.make_analyse(naming.RULES, splits)
  drawn = programs.SeedTasks(None, latents)
  found = analyse(drawn, jax.random.key(0), None, codes)
  assert set(found) == {'ood_unpermuted'}
  (values,) = found.values()
  assert values['rule_f1_block_1'] > 0.99
  assert values['rule_f1_block_0'] < 0.3
  assert 0 < values['rule_f1_majority'] < 0.2


@pytest.mark.slow
def test_a_run_keeps_the_codes_of_its_tasks() -> None:
  """They are those of the same tasks, computed one by one."""
  model = models_test.make(
      input_dim=3, output_dim=1, num_support=5, attention='hyla'
  )
  system = systems.make_system(
      _WORLD,
      model,
      learner_test.make_config(),
      num_evaluation_tasks=_NUM_TASKS,
      naming=naming.TERMS,
  )
  compiled, (drawn,) = learner_test.make_programs(system, [5])
  params = compiled.init().meta_params
  _, kept = compiled.evaluate(params)
  codes = programs.fetch_divided(kept)
  assert codes.shape == (1, len(naming.TERMS.kept), _NUM_TASKS, 2, 2)
  root = randomness.root_key(5)
  keys = jax.random.split(
      randomness.stream(root, 'evaluation'),
      len(system.evaluation_splits),
  )
  for slot, split in enumerate(naming.TERMS.kept):
    index = system.evaluation_splits.index(split)
    latent = drawn.evaluation_latents[index][7]
    key = jax.random.split(keys[index], _NUM_TASKS)[7]
    support, query = _WORLD.sample_examples(
        drawn.task_params, key, latent, split
    )
    first = jax.tree.map(lambda x: x[0], programs.fetch(params))
    expected = model.apply(first, None, support, query.inputs, False).codes
    np.testing.assert_allclose(codes[0, slot, 7], expected, atol=1e-4)
  analyse = programs.over_seeds(system.analyse, [drawn], [root])
  assert analyse is not None
  found = analyse(None, codes)
  assert set(found) == set(naming.TERMS.scored)
  assert set(found['ood_fixed_context']) == {
      *map(naming.TERMS.metric, range(2)),
      naming.TERMS.majority,
  }
  assert all(0 <= v[0] <= 1 for v in found['ood_fixed_context'].values())


def test_a_code_is_a_token_s_attention_to_itself() -> None:
  """In the first block it depends on the query alone, if not normalised."""
  model = models_test.make(attention='linear')
  params = model.init(jax.random.key(0))
  support, inputs = models_test.draw_task()
  other = support._replace(targets=support.targets + 1.0)
  codes, changed = (
      model.apply(params, None, s, inputs, False).codes
      for s in (support, other)
  )
  np.testing.assert_allclose(codes[0], changed[0], rtol=1e-5)
  assert jnp.abs(codes[1] - changed[1]).max() > 1e-3


@pytest.mark.slow
def test_runs_of_fuzzy_logic_are_analysed_and_others_are_not() -> None:
  for config, is_analysed in ((fuzzy_config, True), (in_context, False)):
    run, *_ = sweeps.expand(config.get_config('smoke'))
    system = build.build(run.config, 1).system
    assert bool(system.analyse) == is_analysed

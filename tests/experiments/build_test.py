"""From configs to experiments: what is kept for analyses."""

import dataclasses
from typing import Any

import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import components
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.models import base as models
from modular_hyperteacher.models import maml
from modular_hyperteacher.studies.given_tasks import multitask_mlp
from modular_hyperteacher.studies.in_context import fuzzy_logic
from tests.helpers import built


def _config(name: str, preset: str, model: str) -> dict[str, Any]:
  config = plugins.config_of(name).get_config(preset)
  return sweeps.select(sweeps.expand(config), [f'model={model}'])[0].config


def test_more_adapted_parameters_than_are_kept_skip_analyses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
  """The limit is that of two splits, eight tasks and one seed, in float32."""
  config = _config('fig4e', 'smoke', 'maml')
  _, num_fast = models.count_params(built.bilevel_experiment(config).model)
  needed = 4 * num_fast * 2 * 8
  monkeypatch.setattr(bilevel, '_MAX_KEPT_BYTES', needed)
  assert built.bilevel_experiment(config).analysis is not None
  assert not caplog.text
  monkeypatch.setattr(bilevel, '_MAX_KEPT_BYTES', needed - 1)
  assert built.bilevel_experiment(config).analysis is None
  assert (
      'maml: adapted parameters of 8 tasks, 2 splits and 1 seeds exceed'
      in caplog.text
  )
  assert 'results of analyses will be missing' in caplog.text


@pytest.mark.parametrize('name', ['fig4c', 'fig4e'])
@pytest.mark.parametrize(
    'model, kept',
    [('maml', False), ('anil', True), ('linear_hypernetwork', True)],
)
def test_of_the_papers_runs_mamls_on_the_grid_worlds_are_too_large(
    name: str, model: str, kept: bool, caplog: pytest.LogCaptureFixture
) -> None:
  config = _config(name, 'paper', model)
  analysis = built.bilevel_experiment(config).analysis
  assert (analysis is not None) == kept
  assert ('are not kept' in caplog.text) != kept


def test_a_model_may_be_made_by_an_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  """Even one without a hash, as a dataclass has none."""
  config = _config('fig3b', 'smoke', 'maml')

  @dataclasses.dataclass
  class Make:
    """Counts its calls."""

    calls: int = 0

    def __call__(self, **fields: Any) -> models.MetaModel:
      self.calls += 1
      return maml.make(**fields)

  make = Make()
  monkeypatch.setitem(components.MODELS, 'mine', make)
  config['model'] |= {'name': 'mine'}
  first, second = [built.bilevel_experiment(config).model for _ in range(2)]
  assert first is second and make.calls == 1
  # A function that was changed and loaded again makes the model again.
  again = Make()
  monkeypatch.setitem(components.MODELS, 'mine', again)
  assert built.bilevel_experiment(config).model is not first
  assert again.calls == 1
  config['model'] |= {'hidden_dim': 7}
  assert built.bilevel_experiment(config).model is not first


def test_a_model_without_fast_parameters_has_nothing_to_decode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
  config = plugins.config_of('given_or_inferred').get_config('smoke')
  runs = sweeps.select(sweeps.expand(config), ['model=multitask_mlp'])

  def make(**fields: Any) -> models.MetaModel:
    return multitask_mlp.make(**fields)._replace(make_decoding=None)

  monkeypatch.setitem(components.MODELS, 'mine', make)
  block = runs[0].config
  block['model'] |= {'name': 'mine'}
  analysis = built.bilevel_experiment(block).analysis
  assert analysis is None or not analysis.splits


def _with(config: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
  """Returns a config with some fields of some of its blocks changed."""
  return config | {
      name: _with(config[name], value) if isinstance(value, dict) else value
      for name, value in changes.items()
  }


@pytest.mark.parametrize(
    'name, model, changes, message',
    [
        (
            'fig3b',
            'maml',
            {'model': {'inner': {'random_start': True}}},
            'model.inner.random_start is True; for a model that learns only',
        ),
        (
            'fig3b',
            'maml',
            {'model': {'inner': {'second_order': False}}},
            'model.inner.second_order is False; for a model that learns only',
        ),
        (
            'given_or_inferred',
            'multitask_mlp',
            {'task': {'encoding': None}},
            "model.name is 'multitask_mlp'; it adapts nothing",
        ),
        (
            'scaling',
            'multitask_transformer',
            {'model': {'example_dim': 3}},
            'model.example_dim is 3; it must be ',
        ),
        (
            'fig3b',
            'nonlinear_hypernetwork',
            {'model': {'num_modules': 1}},
            'model.num_modules is 1; it must be at least 2',
        ),
        (
            'fig3b',
            'maml',
            {
                'execution': {'log_every': 1},
                'training': {'num_outer_steps': 10**7},
            },
            'execution.log_every is 1; it must be at least ',
        ),
        (
            'fig3b',
            'maml',
            {'model': {'outer': {'num_outer_steps': 5}}},
            'model.outer.num_outer_steps is 5; it must be absent',
        ),
        (
            'fig3b',
            'maml',
            {'model': {'output_dim': 8}},
            'model.output_dim is 8; leave it out, as the task sets it',
        ),
    ],
)
def test_what_could_not_learn_is_refused(
    name: str, model: str, changes: dict[str, Any], message: str
) -> None:
  config = _config(name, 'smoke', model)
  built.bilevel_experiment(config)
  with pytest.raises(errors.UserError, match=message):
    built.bilevel_experiment(_with(config, changes))


def test_tasks_of_other_systems() -> None:
  """Sequences need a transformer; contexts cannot be fixed here."""
  config = _config('fig3b', 'smoke', 'maml')
  sequences, contexts = (
      plugins.config_of(name).get_config('smoke').task
      for name in ('sraven', 'fuzzy_logic')
  )
  with pytest.raises(errors.UserError, match='as the task shows sequences'):
    built.bilevel_experiment(config | {'task': sequences.to_dict()})
  task = built.bilevel_experiment(config | {'task': contexts.to_dict()}).task
  assert not {*fuzzy_logic.FIXED_CONTEXT} & {*task.evaluation_splits}

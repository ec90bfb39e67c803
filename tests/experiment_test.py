"""From configs to experiments: what is kept for analyses."""

import importlib

import pytest

from modular_hyperteacher import bilevel_experiment
from modular_hyperteacher import experiment
from modular_hyperteacher import sweeps
from modular_hyperteacher.models import base as models


def _config(name, preset, model):
  config = importlib.import_module(f'configs.{name}').get_config(preset)
  return sweeps.select(sweeps.expand(config), [f'model={model}'])[0].config


def test_more_adapted_parameters_than_are_kept_skip_analyses(
    monkeypatch, caplog
):
  """The limit is that of two splits, eight tasks and one seed, in float32."""
  config = _config('fig4e', 'smoke', 'maml')
  _, num_fast = models.count_params(experiment.build(config, 1).model)
  needed = 4 * num_fast * 2 * 8
  monkeypatch.setattr(bilevel_experiment, '_MAX_KEPT_BYTES', needed)
  assert experiment.build(config, num_devices=1).analysis is not None
  assert not caplog.text
  monkeypatch.setattr(bilevel_experiment, '_MAX_KEPT_BYTES', needed - 1)
  assert experiment.build(config, num_devices=1).analysis is None
  assert (
      'maml: adapted parameters of 8 tasks, 2 splits and 1 seeds exceed'
      in caplog.text
  )
  assert 'what an analysis measures will be missing' in caplog.text


@pytest.mark.parametrize('name', ['fig4c', 'fig4e'])
@pytest.mark.parametrize(
    'model, kept',
    [('maml', False), ('anil', True), ('linear_hypernetwork', True)],
)
def test_of_the_papers_runs_mamls_on_the_grid_worlds_are_too_large(
    name, model, kept, caplog
):
  config = _config(name, 'paper', model)
  built = experiment.build(config, num_devices=1)
  assert (built.analysis is not None) == kept
  assert ('are not kept' in caplog.text) != kept

"""Experiments of the bilevel system, built for one device."""

from collections.abc import Mapping
from typing import Any

from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import build


def bilevel_experiment(config: Mapping[str, Any]) -> bilevel.BilevelExperiment:
  """Returns the experiment of a run's config."""
  experiment = build.build(config, num_devices=1)
  assert isinstance(experiment, bilevel.BilevelExperiment)
  return experiment

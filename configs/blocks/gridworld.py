"""What preferences and goals share at the smaller scales."""

from collections.abc import Mapping
from typing import Any

from configs.blocks import experiment
from configs.blocks import presets


def training(preset: str, **paper: Any) -> experiment.Block:
  """Returns the training block of a preset; `paper` are published values."""
  laptop = {
      'num_outer_steps': 3000,
      'meta_batch_size': 16,
      'num_evaluation_tasks': 256,
  }
  scale: Mapping[str, Any] = presets.choose(
      preset, smoke=experiment.SMOKE, laptop=laptop, paper=paper
  )
  return experiment.training(**scale)


def small_models(
    *, num_modules: int, monolithic_rate: float, modular_rate: float
) -> experiment.Block:
  """Returns what small models change: learning rates, and they decay."""

  def small(hidden_dim: int, learning_rate: float, **fields: Any) -> dict:
    # Half a cosine down to this share: with so few steps, it takes the place
    # of the long training at the published rate.
    outer = {'learning_rate': learning_rate, 'final_fraction': 0.01}
    return {'num_hidden': 2, 'hidden_dim': hidden_dim, 'outer': outer} | fields

  hypernetwork = small(32, modular_rate, num_modules=num_modules)
  return {
      'anil': small(128, monolithic_rate),
      'maml': small(64, monolithic_rate),
      'linear_hypernetwork': hypernetwork,
      'nonlinear_hypernetwork': hypernetwork,
  }

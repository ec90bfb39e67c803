"""How many tasks are computed at once, and that it is no matter."""

from typing import Any

import jax
import pytest

from modular_hyperteacher.configs import fig3b
from modular_hyperteacher.configs import fig4c
from modular_hyperteacher.configs import fig4e
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import sweeps


def _chunk_size(
    figure: Any, model: str, num_devices: int = 1, **training: Any
) -> int | None:
  config = figure.get_config('paper')
  config.training.update(training)
  (run,) = sweeps.select(
      sweeps.expand(config), [f'model={model}', 'task_support=random']
  )
  built = build.build(run.config, num_devices)
  return built.execution.task_chunk_size


@pytest.mark.parametrize(
    'figure, model, expected',
    [
        (fig3b, 'linear_hypernetwork', 2),
        (fig3b, 'maml', 2),
        (fig4c, 'linear_hypernetwork', 16),
        (fig4c, 'anil', 4),
        (fig4e, 'linear_hypernetwork', 8),
        (fig4e, 'anil', 4),
        # Many adapted parameters fill the cache with fewer tasks.
        (fig4c, 'maml', 2),
        (fig4e, 'maml', 2),
    ],
)
def test_chunks_on_a_cpu_suit_world_and_model(
    figure: Any, model: str, expected: int
) -> None:
  assert _chunk_size(figure, model) == expected


@pytest.mark.parametrize(
    'figure, model, num_seeds, expected',
    [
        (fig3b, 'linear_hypernetwork', 3, 128),
        (fig4c, 'anil', 6, 128),
        (fig4e, 'linear_hypernetwork', 3, 128),
        (fig3b, 'maml', 1, 32),
        (fig3b, 'maml', 3, 16),
        (fig4c, 'maml', 6, 4),
    ],
)
def test_chunks_on_a_gpu_fill_it_and_fit(
    monkeypatch: pytest.MonkeyPatch,
    figure: Any,
    model: str,
    num_seeds: int,
    expected: int,
) -> None:
  """MAML's memory grows with the adapted parameters of tasks and seeds."""
  monkeypatch.setattr(jax, 'default_backend', lambda: 'gpu')
  seeds = tuple(range(num_seeds))
  assert _chunk_size(figure, model, seeds=seeds) == expected


def test_chunks_divide_a_device_s_tasks() -> None:
  assert _chunk_size(fig4e, 'linear_hypernetwork', meta_batch_size=20) == 4
  assert _chunk_size(fig4e, 'linear_hypernetwork', 8, meta_batch_size=16) == 2

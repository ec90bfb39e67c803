"""The worlds whose tasks are drawn."""

from typing import cast

import jax

from modular_hyperteacher import randomness
from modular_hyperteacher import worlds
from modular_hyperteacher.worlds import task_world


def make(
    name: str, seed: int, preset: str = 'laptop'
) -> tuple[task_world.TaskWorld, jax.Array]:
  """Returns a world of a seed, and the key of what is drawn."""
  world = worlds.make(name, preset=preset, seed=seed)
  key = randomness.stream(randomness.root_key(seed), 'picture')
  return cast(task_world.TaskWorld, world), key

"""Tasks of a user that cannot be trained; named in tests of bad input."""

import dataclasses
import functools
from typing import Any

import jax.numpy as jnp

from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import hyperteacher


def without_valid(**fields: Any) -> base.TaskDistribution:
  """Returns the hyperteacher without the split 'valid'."""
  task = hyperteacher.make(**fields)
  return dataclasses.replace(task, evaluation_splits=('test', 'ood'))


def nothing(**unused_fields: Any) -> None:
  """Lacks its `return`."""


def without_tuple(**fields: Any) -> base.TaskDistribution:
  """Returns the hyperteacher with splits that are no tuple."""
  task = hyperteacher.make(**fields)
  return dataclasses.replace(task, evaluation_splits='valid')


def flat(**fields: Any) -> base.TaskDistribution:
  """Returns the hyperteacher with latents that have no layers."""
  task = hyperteacher.make(**fields)
  ones = jnp.ones(task.num_modules)
  return dataclasses.replace(task, sample_latent=lambda *_: ones)


def _mistaken(**unused_fields: Any) -> base.TaskDistribution:
  raise ValueError('a mistake in a partial function')


partial = functools.partial(_mistaken)

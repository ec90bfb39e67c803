"""Continuous latents: how much each active module contributes.

Source: Appendix B, Algorithm 1. For a mask b of active modules and
exponentially distributed E_m:

  w_m = b_m E_m / (c + sum_j b_j E_j)
  z_m = b_m (1 + w_m) / 2

Active entries lie in [0.5, 1], so latents of different masks never coincide.
In the paper c = 0: the weights w sum to one, and a single active module always
has z = 1. The default here is c = 1, as in the authors' released code, where a
single active module has a mean z of 0.702.
"""

from typing import Annotated

import jax
import jax.numpy as jnp

from modular_hyperteacher.untrusted import rules

SAMPLERS = {'released': 1.0, 'paper': 0.0}
Sampler = Annotated[str, rules.one_of(SAMPLERS)]


def sample_continuous(
    key: jax.Array, mask: jax.Array, sampler: str = 'released'
) -> jax.Array:
  """Draws a latent, float [..., M], that is nonzero where the mask is.

  The mask is [..., M], bool or 0/1, with a module active in each row.
  """
  mask = mask.astype(jnp.float32)
  shares = mask * jax.random.exponential(key, mask.shape)
  total = SAMPLERS[sampler] + shares.sum(-1, keepdims=True)
  return 0.5 * mask * (1 + shares / total)


def normalise(mask: jax.Array) -> jax.Array:
  """Returns the discrete latent of a mask [..., M]: the mask at unit norm."""
  mask = mask.astype(jnp.float32)
  return mask / jnp.linalg.norm(mask, axis=-1, keepdims=True)

"""Linear hypernetwork: weights are a linear mixture of modules.

Source: Appendix D.3. The rows of a generator's matrix are the student's
modules; the normalised embedding mixes them.
"""

import math

import haiku as hk

from modular_hyperteacher.models import base
from modular_hyperteacher.models import hypernetwork


def make(
    *,
    input_dim: int,
    output_dim: int,
    num_hidden: int,
    hidden_dim: int,
    num_modules: int,
) -> base.MetaModel:
  """Returns a linear hypernetwork with `num_modules` modules per generator."""

  def make_generator(size, name):
    return hk.Linear(
        size,
        with_bias=False,
        w_init=hk.initializers.TruncatedNormal(1 / math.sqrt(num_modules)),
        name=name,
    )

  return hypernetwork.make(
      make_generator,
      input_dim=input_dim,
      output_dim=output_dim,
      num_hidden=num_hidden,
      hidden_dim=hidden_dim,
      num_modules=num_modules,
      fast_bias=True,
  )

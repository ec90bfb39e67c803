"""Linear hypernetwork: weights are a linear mixture of modules.

Source: Appendix D.3. The rows of a generator's matrix are the student's
modules, and the normalised embedding mixes them.
"""

from modular_hyperteacher.models import base
from modular_hyperteacher.models import hypernetwork
from modular_hyperteacher.untrusted import rules


@rules.enforce('model')
def make(
    *,
    input_dim: int,
    output_dim: int,
    num_hidden: rules.Layers,
    hidden_dim: rules.Count,
    num_modules: rules.Count,
) -> base.MetaModel:
  """Returns a linear hypernetwork with `num_modules` modules per generator."""
  return hypernetwork.make(
      hypernetwork.Generators(
          init=hypernetwork.heads.init,
          features=lambda params, embeddings: dict(embeddings),
          banks=lambda params: {name: p['w'] for name, p in params.items()},
      ),
      hypernetwork.base_blocks(input_dim, output_dim, num_hidden, hidden_dim),
      num_modules,
      fast_bias=True,
  )

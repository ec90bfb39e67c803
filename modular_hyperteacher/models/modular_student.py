"""The theory's student: a network like its teacher, with a latent per task.

Source: Section 3.1, Appendix B. The student has the teacher's form,

  y = relu(x W(z) / sqrt(X)) a,   W(z) = sum_m z_m Theta_m

with M-hat modules [M-hat, X, H-hat] and a readout [H-hat, Y] that all tasks
share. Only its latent z [M-hat] is fast. It starts from a random vector that is
not learned.
"""

import jax

from modular_hyperteacher.models import base
from modular_hyperteacher.tasks import teacher_student
from modular_hyperteacher.untrusted import rules


@rules.enforce('model')
def make(
    *,
    input_dim: int,
    output_dim: int,
    hidden_dim: rules.Count,
    num_modules: rules.Count,
) -> base.MetaModel:
  """Returns a student of width `hidden_dim` with `num_modules` modules."""

  def init(key: base.Key) -> base.MetaParams:
    network_key, latent_key = jax.random.split(key)
    modules, readout = teacher_student.init_modular(
        network_key, num_modules, input_dim, hidden_dim, output_dim
    )
    return {
        'modules': modules,
        'readout': readout,
        'latent_start': jax.random.normal(latent_key, (num_modules,)),
    }

  def decode(
      meta_params: base.MetaParams,
      fast_params: base.FastParams,
      encoding: jax.Array,
  ) -> jax.Array:
    return teacher_student.respond(
        meta_params['modules'], meta_params['readout'], fast_params, encoding
    )

  return base.MetaModel(
      init=init,
      init_fast=lambda meta_params: meta_params['latent_start'],
      encode=base.identity_encoding,
      decode=decode,
      is_learned=lambda meta_params: {
          name: name != 'latent_start' for name in meta_params
      },
      reads_compact=True,
  )

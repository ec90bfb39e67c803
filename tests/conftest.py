"""Eight host devices and strict shapes for all tests."""

import os

# Added to what the user set; must happen before JAX starts its backend.
os.environ['XLA_FLAGS'] = (
    os.environ.get('XLA_FLAGS', '')
    + ' --xla_force_host_platform_device_count=8'
).strip()

import jax  # pylint: disable=wrong-import-position

jax.config.update('jax_numpy_rank_promotion', 'raise')

"""Options with which XLA compiles faster, to slower programs, on a CPU.

They skip LLVM's optimisations, the bulk of compile time, and XLA's fusion
emitters, without which Figure 3B's smoke preset takes 29% less CPU time. JAX
0.11.1 and later refuse the second option. Rounding may differ.
"""

from typing import Any

from jaxlib import version

QUICK: dict[str, Any] = {'xla_backend_optimization_level': 0}
if version.__version_info__ < (0, 11, 1):
  QUICK['xla_cpu_use_fusion_emitters'] = False


def as_flags() -> str:
  """Returns `QUICK` as a value of XLA_FLAGS, which JAX reads when it starts."""
  return ' '.join(f'--{name}={value}' for name, value in QUICK.items())

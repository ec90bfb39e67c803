"""The flags of launchers, which commands define when they run."""

from absl import flags

from modular_hyperteacher.launch import campaign
from modular_hyperteacher.launch import local
from modular_hyperteacher.launch import parts
from modular_hyperteacher.launch import plan


def parse() -> None:
  """Gives all of them their defaults."""
  if 'workers' not in flags.FLAGS:
    for module in (plan, local, campaign, parts):
      module.define_flags()
  flags.FLAGS(['tests'])

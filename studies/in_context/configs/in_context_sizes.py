"""Does it matter how long a context is, and how wide the plain transformer?

The transformers of `in_context.py`, trained on 12 of 15 pairs of
modules (Connected+). Kobayashi et al. (2024) do not say how many examples a
sequence has, and their plain transformer is twice as wide as the one with a
bottleneck. This config varies both. At laptop scale: 16 and 64 tokens (usual:
32), and twice the width. At the published scale: 16, 32 and 128 tokens (usual:
64), and half the width. Not trained so far. 16 and 64 tokens and twice the
width take about as many steps as the runs of `in_context.py`; by FLOPs, a step
costs half, twice and four times as much.

  python -m modular_hyperteacher.main --config=in_context_sizes
  python figures/make_all.py --only=in_context_sizes
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.studies.in_context.configs import blocks as in_context
from modular_hyperteacher.studies.in_context.configs import in_context as usual


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = usual.get_config(preset)
  width = presets.choose(preset, smoke=16, laptop=128, paper=64)
  config.experiment = 'in_context_sizes'
  steps = {'num_outer_steps': [15_000]} if preset == 'laptop' else {}
  config.sweep = (
      # Examples in the context, and one query.
      *in_context.grids(
          preset,
          (15_000, 60_000),
          num_support=presets.choose(
              preset, smoke=[15], laptop=[15, 63], paper=[15, 31, 127]
          ),
      ),
      dict(
          model=[in_context.VANILLA],
          embedding_dim=[width],
          feedforward_dim=[4 * width],
          **steps,
      ),
  )
  return config

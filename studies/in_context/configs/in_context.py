"""When do transformers recompose modules in context? (Kobayashi et al., 2024)

Figures 2A to 2D and 3: a transformer, and one with a bottleneck (a latent code
that a linear hypernetwork turns into the task's network), predict modular
regression tasks in context. OOD tasks combine pairs of modules that training
never shows together. 'ring_chords' is the paper's Connected+, 'ring' Connected,
'triangles' Disconnected; at laptop scale, only 'workstation' trains on the last
two (Figure 2D).

  python -m modular_hyperteacher.main --config=in_context
  python figures/make_all.py --only=in_context
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.studies.in_context.configs import blocks as in_context

WORKSTATION = presets.WORKSTATION


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns a config: 'smoke', 'laptop', 'workstation' or 'paper'."""
  all_supports = preset != 'laptop'
  preset = presets.scale(preset)
  sweep = in_context.grids(
      preset, (15_000, 60_000), task_support=['ring_chords']
  )
  if all_supports:
    sweep += in_context.grids(
        preset, (9_000, 27_000), task_support=['ring', 'triangles']
    )
  task = {
      'name': 'modular_regression',
      # Which pairs of modules are trained on: 'ring_chords', 'ring' or
      # 'triangles'.
      'task_support': 'ring_chords',
      'input_dim': 16,
      'output_dim': 1,
      'teacher_hidden_dim': 16,
      # Examples in the context, and to predict. The paper does not say how
      # many.
      'num_support': 63 if preset == 'paper' else 31,
      'num_query': 1,
  }
  models = in_context.models(
      preset,
      # Entries of the latent code; the teacher has as many modules.
      num_modules=6,
      # Width of the network that the code generates; twice the teacher's.
      task_num_hidden=1,
      task_hidden_dim=32,
      task_bias=False,
  )
  return experiment.make(
      'in_context',
      preset,
      sweep,
      task=task,
      models=models,
      training=in_context.training(preset),
  )

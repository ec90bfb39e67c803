"""Does attention as a hypernetwork (HYLA) recompose rules of sRAVEN?

Table A1 and Figures 4 and 5 of Schug et al. (2025): transformers with softmax,
linear and HYLA attention predict the last of nine panels, whose features follow
rules. OOD tasks are multisets of rules that training never shows. Published OOD
accuracy with four features: HYLA 0.69, softmax 0.57, linear 0.56. 'laptop' has
two features.

  python -m modular_hyperteacher.main --config=sraven
  python figures/make_all.py --only=sraven,sraven_decoding
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.studies.in_context import attention
from modular_hyperteacher.studies.in_context.configs import blocks as in_context

MAIN = ['softmax', 'linear', 'hyla']
VARIED = ['softmax', 'hyla']


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  num_heads = 16 if preset == 'paper' else 8
  model = in_context.attention_model(
      preset,
      0.0064,
      num_layers=presets.choose(preset, smoke=2, laptop=3, paper=4),
      num_heads=num_heads,
      # Four features per head, as in the released code.
      qkv_dim=4 * num_heads,
  )
  training = in_context.training(preset)
  # 20 million instances at the published scale.
  if preset != 'smoke':
    training['num_outer_steps'] = 156_250 if preset == 'paper' else 15_000
  sweep = [_grid(list(attention.KINDS) if preset == 'paper' else MAIN)]
  if preset == 'laptop':
    # Figures 5C and 5D.
    sweep += [
        _grid(VARIED, num_heads=[1]),
        _grid(VARIED, num_features=[3]),
    ]
  return experiment.make(
      'sraven',
      preset,
      sweep,
      task={
          'name': 'sraven',
          # Features of a panel, each with its own rule; values of a feature.
          'num_features': 4 if preset == 'paper' else 2,
          'num_values': 8,
          # Share of the multisets of rules that is held out.
          'ood_fraction': 0.25,
      },
      models={in_context.VANILLA: model},
      training=training,
  )


def _grid(kinds: list[str], **axes: list[int]) -> sweeps.Grid:
  return dict(model=[in_context.VANILLA], attention=kinds, **axes)

"""Does attention as a hypernetwork (HYLA) recompose terms of fuzzy logic?

Figure 2C and Table A1 of Schug et al. (2025): transformers with softmax, linear
and HYLA attention, and HYLA's ablations, predict functions of fuzzy logic in
context. OOD functions are new combinations of known terms. Published OOD R2
with 32 tokens and 70% held out: HYLA 0.81, softmax 0.63, linear 0.60. 'laptop'
takes two hours of one core.

  python -m modular_hyperteacher.main --config=fuzzy_logic
  python figures/make_all.py --only=fuzzy_logic,fuzzy_logic_a1
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.studies.in_context import attention
from modular_hyperteacher.studies.in_context.configs import blocks as in_context

MAIN = ['softmax', 'linear', 'hyla']


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  # Two features per head, as in the released code.
  model = in_context.attention_model(preset, 0.002, num_heads=8, qkv_dim=16)
  training = in_context.training(preset)
  if preset != 'smoke':
    training['num_outer_steps'] = 50_000 if preset == 'paper' else 6_000
  lengths = [15, 63, 95] if preset == 'paper' else [15]
  sweep = [
      # Table A1. Tokens are the context and one query.
      _grid(list(attention.KINDS), [31], [0.7]),
      # The rest of Figure 2C.
      _grid(MAIN, lengths, [0.3, 0.5, 0.7]),
      *([_grid(MAIN, [31], [0.3, 0.5])] if preset == 'paper' else []),
  ]
  return experiment.make(
      'fuzzy_logic',
      preset,
      sweep,
      task={
          'name': 'fuzzy_logic',
          'num_variables': 4,
          # Terms of a function.
          'num_active': 2,
          # Share of the combinations of known terms that is held out.
          'ood_fraction': 0.7,
          # Examples in the context, and to predict.
          'num_support': 31,
          'num_query': 1,
      },
      models={in_context.VANILLA: model},
      training=training,
  )


def _grid(
    kinds: list[str], lengths: list[int], fractions: list[float]
) -> sweeps.Grid:
  return dict(
      model=[in_context.VANILLA],
      attention=kinds,
      num_support=lengths,
      ood_fraction=fractions,
  )

"""Figure 4C: modular students recompose preferences, monolithic ones do not.

Four models meta-learn preferences that mix up to K = 3 of M = 8 templates.
With compositional support the OOD loss of the hypernetworks is lower than that
of ANIL and MAML; with non-compositional support (the last template held out)
it rises markedly.

  python -m modular_hyperteacher.main --config=configs/fig4c.py
  python figures/make_all.py --only=fig4c
"""

from configs.blocks import experiment
from configs.blocks import models
from configs.blocks import preferences
from modular_hyperteacher.experiments import sweeps


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  supports = ['random', 'non_compositional']
  sweep = [sweeps.grid(task_support=supports, model=models.MODELS)]
  if preset == 'laptop':  # As many meta-parameters as the hypernetworks have.
    wide = sweeps.grid(
        {'hidden_dim': [326]},
        task_support=supports,
        model=models.MONOLITHIC,
    )
    sweep.append(wide)
  blocks = preferences.blocks(preset, num_seeds=6)
  return experiment.make('fig4c', preset, sweep, **blocks)

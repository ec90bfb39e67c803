"""Beyond the paper: does MAML recompose if it learns which weights to adapt?

Sparse-MAML (von Oswald, Zhao et al., 2021) multiplies inner updates by learned
binary gates. Of the hyperteacher we know where they should open: its tasks
differ in the generated layer, and all share the first and the readout. Teacher
and tasks are those of Figure 3B, whose hypernetworks and MAML are shown for
comparison.

Inner loops are as published (plain gradient descent, first-order outer
gradients) or Figure 3B's (AdamW, second order). They take ten steps, and 5, 35
(as published) and 100 in figure sm_steps. At laptop scale the 26 runs that are
not Figure 3B's took 82 minutes of one core (three seeds).

  python -m modular_hyperteacher.main --config=sparse_maml \
      --only=model.name=sparse_maml
  python figures/make_all.py --only=sm_accuracy,sm_where,sm_steps
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import presets

_FIGURE_3B = (*models.HYPERNETWORKS, 'maml')
# Model -> its gates.
_GATES = {
    'maml': 'all',
    'anil': 'readout',
    'boil': 'body',
    'sparse_maml': 'binary',
    'sparse_relu_maml': 'rectified',
    'meta_sgd': 'rates',
}
_INNER = {
    'sgd': {
        'solver': 'sgd',
        # Chosen among 0.1, 0.25, 0.5 and 1: MAML's best on seen combinations
        # after 500 steps of one seed.
        'learning_rate': 0.5,
        'weight_decay': 0.0,
        'eps_root': 0.0,
        'second_order': False,
        'first_order': True,
    },
    'adamw': {'solver': 'adamw', 'second_order': True, 'first_order': False},
}


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  blocks = hyperteacher.blocks(preset, num_modules=8)
  adapted = blocks['models']
  blocks['models'] = {name: adapted[name] for name in _FIGURE_3B}
  for solver, inner in _INNER.items():
    for name, gates in _GATES.items():
      gated = {'name': 'sparse_maml', 'gates': gates, 'inner': inner}
      if (solver, name) == ('adamw', 'maml'):
        continue  # Figure 3B's MAML.
      # A new block for each, so that models share no field.
      maml = hyperteacher.blocks(preset)['models']['maml']
      if gates == 'binary':
        gated['initial_sparsity'] = 0.5
      gated['outer'] = {'gate_learning_rate': 0.0075}
      blocks['models'][f'{solver}_{name}'] = presets.merge(maml, gated)
  supports = ['random', 'non_compositional']
  compositional = {'task_support': ['random']}
  by_solver = {
      solver: [name for name in blocks['models'] if name.startswith(solver)]
      for solver in _INNER
  }
  sweep = [
      dict(
          task_support=supports,
          model=[*_FIGURE_3B, *by_solver['sgd']],
      ),
      dict(compositional, model=by_solver['adamw']),
      dict(
          compositional,
          model=['sgd_sparse_maml'],
          initial_sparsity=[0.25, 0.75, 0.9],
      ),
      dict(
          {**compositional, 'inner.num_steps': [5, 35, 100]},
          model=['sgd_maml', 'sgd_sparse_maml'],
      ),
  ]
  return experiment.make('sparse_maml', preset, sweep, **blocks)

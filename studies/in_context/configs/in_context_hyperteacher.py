"""Beyond the papers: in-context learners on the hyperteacher of Figure 3B.

The transformer and the transformer with a bottleneck of `in_context.py`
read a task's support set as their context, and predict one query. Teacher,
splits and support sets are those of Figure 3B, where MAML, ANIL and the
hypernetworks adapt to the same support sets by gradients. Expected before the
runs: the bottleneck's OOD accuracy exceeds the transformer's with compositional
support.

  python -m modular_hyperteacher.main \
      --config=in_context_hyperteacher
  python figures/make_all.py --only=in_context_hyperteacher
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.studies.in_context.configs import blocks as in_context


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  # A sequence asks for one prediction.
  task = hyperteacher.blocks(preset, num_modules=8, num_query=1)['task']
  models = in_context.models(
      preset,
      # As many as the hypernetworks of Figure 3B have.
      num_modules=32,
      # Like the teacher: the first layer is shared, all others are generated.
      task_num_hidden=task['teacher_num_hidden'],
      task_hidden_dim=128 if preset == 'paper' else 32,
      # Targets are standardised for each task, which takes biases.
      task_bias=True,
  )
  return experiment.make(
      'in_context_hyperteacher',
      preset,
      in_context.grids(
          preset,
          (10_000, 20_000),
          task_support=['random', 'non_compositional'],
      ),
      task=task,
      models=models,
      training=in_context.training(preset),
  )

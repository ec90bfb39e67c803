"""Is composition hard for a plain network because it must infer the task?

A question of ours on the findings of Redhardt et al. (2025). An MLP gets the
mask of every task of Figure 3B's hyperteacher with its inputs. The students of
Figure 3B, which infer the task from its support set, see the same tasks.

At laptop scale, the two runs of the MLP take a minute of one core.

  python -m modular_hyperteacher.main --config=given_or_inferred \
      --only=model.name=multitask_mlp
  python figures/make_all.py --only=sg_given_or_inferred
"""

from ml_collections import config_dict

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.studies.given_tasks.configs import blocks as multitask


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  blocks = hyperteacher.blocks(
      preset,
      num_modules=8,
      # How the task is given; None if it must be inferred.
      encoding=config_dict.placeholder(str),
  )
  blocks['models'] |= {multitask.NAME: multitask.model(preset)}
  supports = ['random', 'non_compositional']
  sweep = [
      dict(
          task_support=supports, model=[multitask.NAME], encoding=['identity']
      ),
      dict(task_support=supports, model=list(models.MODELS)),
  ]
  return experiment.make('given_or_inferred', preset, sweep, **blocks)

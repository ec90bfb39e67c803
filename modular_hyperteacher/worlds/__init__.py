"""The package's worlds for any framework: NumPy arrays in, scores out.

  from modular_hyperteacher import worlds

  worlds.list()
  world = worlds.make(
      'hyperteacher', preset='laptop', task_support='random', seed=2020
  )
  tasks = world.sample('ood', num_tasks=256, seed=0)
  world.score(my_predictions, tasks)['accuracy']

`python -m modular_hyperteacher.worlds` writes tasks to a file and scores files
of predictions.
"""

from modular_hyperteacher.worlds.catalogue import make
from modular_hyperteacher.worlds.catalogue import names as list
from modular_hyperteacher.worlds.files import export
from modular_hyperteacher.worlds.files import score as score_file
from modular_hyperteacher.worlds.files import write_predictions
from modular_hyperteacher.worlds.world import Tasks
from modular_hyperteacher.worlds.world import World

__all__ = (
    'Tasks',
    'World',
    'export',
    'list',
    'make',
    'score_file',
    'write_predictions',
)

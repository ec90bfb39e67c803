"""Section 4.1: combinations of more modules than training ever combined.

Difficulty depends on the number of modules of a task. So each hypernetwork is
trained twice: on combinations of few modules, as in Figure 3B, and, as a
control, on combinations of up to all modules. The difference in accuracy shows
the effect of unseen numbers of modules.

OOD(K=8) is a single combination. In most seeds the control trains on it, but is
evaluated on it all the same (`repeat_empty`). Of tasks of four modules, it is
evaluated on those that it held out. At 'desktop', the first training is Figure
3E's.

  python -m modular_hyperteacher.main --config=configs/more_modules.py
  python -m modular_hyperteacher.main --config=configs/more_modules.py:desktop
  python figures/make_all.py --only=more_modules
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import presets

DESKTOP = presets.DESKTOP


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of a preset; see `presets`."""
  is_shared = preset == presets.DESKTOP
  blocks = hyperteacher.blocks(
      preset, num_modules=8, repeat_empty=not is_shared
  )
  if preset == 'laptop':
    blocks['training']['seeds'] = tuple(range(2020, 2032))
  few, most = blocks['task']['max_active'], blocks['task']['num_modules']
  sweep = [
      dict(
          {'task.max_active': [max_active]},
          model=models.HYPERNETWORKS,
          **repeat,
          **hyperteacher.fewer_steps(preset),
      )
      for max_active, repeat in (
          (few, {}),
          (most, {'repeat_empty': [True]} if is_shared else {}),
      )
  ]
  return experiment.make('more_modules', preset, sweep, **blocks)

"""Ours: how large must a teacher be for its modules to be found?

Teachers with two generated layers, M = 8 and K = 2, which have fewer inputs,
fewer hidden units or fewer examples than published, all else equal: the student
is the linear hypernetwork of the preset 'desktop', and sees as many tasks of
each. At laptop scale, 12 runs of three seeds took 48 minutes of one core.

  python -m modular_hyperteacher.main --config=configs/teacher_size.py
  python figures/make_all.py --only=teacher_size
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import presets

_INPUTS, _UNITS = 'task.input_dim', 'task.teacher_hidden_dim'


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  scale = presets.DESKTOP if preset == 'laptop' else preset
  blocks = hyperteacher.blocks(scale, num_modules=8, max_active=2)
  if preset == 'laptop':
    blocks['training'] |= {
        'seeds': (2020, 2021, 2022),
        'num_outer_steps': 1000,
        'evaluate_every': 250,
        'num_evaluation_tasks': 256,
    }
  inputs, units, examples = presets.choose(
      preset,
      smoke=((4, 8), (6,), (16,)),
      laptop=((4, 8, 16), (6, 16, 32), (32, 64, 128)),
      paper=((4, 8, 16), (6, 16, 32), (32, 64, 128)),
  )
  sweep = [
      dict({_INPUTS: inputs, _UNITS: units}, model=['linear_hypernetwork']),
      *(
          dict(
              {'task.num_support': [number], 'task.num_query': [number]},
              model=['linear_hypernetwork'],
          )
          for number in examples
      ),
  ]
  return experiment.make('teacher_size', preset, sweep, **blocks)

"""What makes few modules slow to learn at laptop scale (Figure A3)?

The paper's students need more training tasks the more modules there are. At
laptop scale it is the other way round, which contradicts claim A3. Teachers
with four modules differ from those with ten in two more ways: their students
are smaller (four modules for each of the teacher's), and training sees fewer
combinations. Here, each is changed alone.

  python -m modular_hyperteacher.main --config=configs/fig_a3_students.py
  python figures/make_all.py --only=fig_a3_students
"""

from modular_hyperteacher.configs import fig_a3
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.experiments import sweeps

# M, modules of the student for each of the teacher's, share held out. The first
# of each M is as in Figure A3.
CELLS = (
    (4, 4, 0.25),
    (4, 10, 0.25),
    (10, 4, 0.25),
    (10, 2, 0.25),
    (10, 4, 0.9),
)


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  config = fig_a3.get_config(preset)
  config.experiment = 'fig_a3_students'
  config.sweep = tuple(
      sweeps.grid(
          {'task.num_modules': [num_modules]},
          modules_per_teacher_module=[factor],
          fraction_ood=[held_out],
          max_active=[3],
          model=models.HYPERNETWORKS,
      )
      for num_modules, factor, held_out in CELLS
  )
  if preset == 'laptop':
    config.training.seeds = tuple(range(2020, 2025))
  return config

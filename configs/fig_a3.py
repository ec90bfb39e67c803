"""Figure A3: how many training tasks a given OOD accuracy takes.

Models on the hyperteacher with M modules, up to K of them combined. The number
of training tasks (outer steps times tasks per step) until OOD accuracy reaches
a given level grows with M, the paper finds; at laptop scale, four modules take
most. 'laptop' is thinned to the hypernetworks, K = 3 and four values of M, and
evaluated more often.

  python -m modular_hyperteacher.main --config=configs/fig_a3.py
  python -m modular_hyperteacher.main --config=configs/fig_a3.py:students
  python -m modular_hyperteacher.main --config=configs/fig_a3.py:two_layers
  python figures/make_all.py --only=fig_a3,fig_a3_students,fig_a3_two_layers
"""

from modular_hyperteacher.configs import fig3e
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import hyperteacher
from modular_hyperteacher.configs.blocks import models
from modular_hyperteacher.configs.blocks import variants

# M, modules of the student for each of the teacher's, share held out. The first
# of each M is as in Figure A3.
_CELLS = (
    (4, 4, 0.25),
    (4, 10, 0.25),
    (10, 4, 0.25),
    (10, 2, 0.25),
    (10, 4, 0.9),
)


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of a preset, or of a variant; see `VARIANTS`."""
  num_modules, max_active, students = (4, 6, 8, 10), (3,), models.HYPERNETWORKS
  if preset == 'paper':
    num_modules, max_active = (4, 6, 8, 10, 12, 14, 16), (2, 3, 4)
    students = models.MODELS
  sweep = dict(
      {'task.num_modules': num_modules}, max_active=max_active, model=students
  )
  blocks = hyperteacher.blocks(preset, evaluate_every=250)
  return experiment.make('fig_a3', preset, sweep, **blocks)


def _students(preset: str) -> experiment.Config:
  """Changes one thing at a time: what makes few modules slow to learn?

  Teachers with four modules differ from those with ten in two more ways: their
  students are smaller (four modules for each of the teacher's), and training
  sees fewer combinations. Here, each is changed alone.
  """
  config = get_config(preset)
  config.sweep = tuple(
      dict(
          {'task.num_modules': [num_modules]},
          modules_per_teacher_module=[factor],
          fraction_ood=[held_out],
          max_active=[3],
          model=models.HYPERNETWORKS,
      )
      for num_modules, factor, held_out in _CELLS
  )
  if preset == 'laptop':
    config.training.seeds = tuple(range(2020, 2025))
  return config


def _two_layers(preset: str) -> experiment.Config:
  """Generates two layers: do more modules take more tasks?

  As published, two layers are generated, and each combines up to K = 2 of its
  own M modules. The teacher has eight inputs, units and outputs, and training
  is four times as long as the preset's. The runs with eight modules are those
  of `fig3e:teacher_longer`.
  """
  config = fig3e.teacher_longer(preset)
  config.sweep = (
      dict(
          {'task.num_modules': [4, 6, 8]},
          max_active=[2],
          model=models.HYPERNETWORKS,
      ),
  )
  return config


VARIANTS = {'students': _students, 'two_layers': _two_layers}
get_config = variants.add('fig_a3', get_config, VARIANTS)

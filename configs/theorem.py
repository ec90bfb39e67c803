"""Theorem 1 as an experiment: no error in training, no error anywhere.

Students of exactly the teacher's size are trained from many starts, on
connected families (the ring) and on disconnected ones (two triangles). Not
every start reaches a loss near zero. With connected families, students that do
fit every combination of modules, and have found the modules. With disconnected
families, a student may permute the hidden units of one half of the modules
against those of the other half. The theorem's single output cannot detect this;
the four outputs of the paper's experiments can.

  python -m modular_hyperteacher.main --config=configs/theorem.py
  python figures/make_all.py --only=theorem
"""

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import theory


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  # With one output, few starts reach zero error.
  num_seeds = {1: 1, 4: 1} if preset == 'smoke' else {1: 32, 4: 12}
  sweep = [
      theory.grid(
          preset,
          'levenberg_marquardt',
          8000,
          hidden_dim=[4],
          modules_per_teacher_module=[1],
          output_dim=[output_dim],
          seeds=[tuple(range(100, 100 + number))],
          task_support=['ring', 'triangles'],
      )
      for output_dim, number in num_seeds.items()
  ]
  blocks = theory.blocks(
      preset, chunk_size=1, teacher_hidden_dim=4, latent_type='continuous'
  )
  return experiment.make('theorem', preset, sweep, **blocks)

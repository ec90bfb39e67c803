"""Loads a trained model, adapts it to a task, and decodes the task's modules.

  python examples/pretrained.py
  python examples/pretrained.py --name=fig3b/laptop --results=results

First prints a table of what can be loaded; nothing is trained.
"""

from absl import flags
import jax
import numpy as np

from modular_hyperteacher import pretrained
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.cli import script

_NAME = flags.DEFINE_string(
    'name', 'fig3b/laptop', 'Experiment and preset to load.'
)
_MODEL = flags.DEFINE_string('model', 'linear_hypernetwork', 'Model to load.')
command_line.define_results_flag()


def main() -> None:
  """Prints what can be loaded, then one task as a trained model sees it."""
  root = command_line.read_root()
  print(pretrained.available(root).to_string(index=False))
  loaded = pretrained.load(
      _NAME.value,
      model=_MODEL.value,
      task_support='random',
      results_root=root,
  )
  student = loaded.student()
  # A combination of modules not seen in training. For a support set of your
  # own: tasks.base.examples(inputs, targets).
  task = student.sample('ood', jax.random.key(1))
  fast_params = student.adapt(task.support)
  outputs = student.predict(fast_params, task.query.inputs)
  decode = student.fit_decoder()
  print('outputs', outputs.shape)
  for name, value in student.score(fast_params, task.query).items():
    print(name, float(value))
  print('modules', np.flatnonzero(task.latent[0]))
  print('decoded', np.round(decode(fast_params)[0], 2))


if __name__ == '__main__':
  script.run(main)

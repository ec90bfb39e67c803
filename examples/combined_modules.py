"""How accurate is a trained model on tasks of more and more modules?

  python examples/combined_modules.py
  python examples/combined_modules.py --max_active=8 --results=any_size

Prints the accuracy on random tasks of the hyperteacher that combine exactly k
modules, for every k, whether seen in training or not. Difficulty depends on k,
so compare with a model that was trained on combinations of any size, which
takes five minutes:

  python -m modular_hyperteacher.main --config=configs/fig3b.py \
      --config.task.max_active=8 --only=task_support=random \
      --only=model=linear_hypernetwork --results=any_size
"""

from absl import flags
import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import pretrained
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.cli import script
from modular_hyperteacher.pretrained import student as students
from modular_hyperteacher.tasks import base

_NAME = flags.DEFINE_string(
    'name', 'fig3b/laptop', 'Experiment and preset to load.'
)
_MODEL = flags.DEFINE_string('model', 'linear_hypernetwork', 'Model to load.')
_MAX_ACTIVE = flags.DEFINE_integer(
    'max_active', 3, 'Most modules that were combined in training.'
)
command_line.define_results_flag()
_NUM_TASKS = flags.DEFINE_integer(
    'tasks', 64, 'Tasks per number of modules.', lower_bound=1
)


def main() -> None:
  """Prints the accuracy by number of modules, mean and error over seeds."""
  loaded = pretrained.load(
      _NAME.value,
      model=_MODEL.value,
      task_support='random',
      max_active=_MAX_ACTIVE.value,
      results_root=command_line.read_root(),
  )
  seeds = loaded.config['training']['seeds']
  accuracies = np.array([
      accuracy_by_modules(loaded.student(seed), _NUM_TASKS.value)
      for seed in seeds
  ])
  number = len(seeds)
  print(f'{_MODEL.value}, {number} seeds')
  for k, values in enumerate(accuracies.T, start=1):
    error = f' ± {values.std(ddof=1) / number**0.5:.3f}' if number > 1 else ''
    print(f'k = {k}: {values.mean():.3f}{error}')


def accuracy_by_modules(
    student: students.Student, num_tasks: int
) -> list[float]:
  """Returns the accuracy on tasks of 1, 2, ..., M modules."""
  task, params = student.experiment.task, student.task_params

  @jax.jit
  def accuracy(latent: jax.Array, key: jax.Array) -> jax.Array:
    draw_key, adapt_key = jax.random.split(key)
    support, query = task.sample_examples(params, draw_key, latent, 'ood')
    drawn = base.Task(support, query, latent)
    return student.score(student.adapt(drawn, adapt_key), query)['accuracy']

  rng = np.random.default_rng(student.seed)
  shape = student.evaluation_latents.shape[-2:]  # [L, M]
  means = []
  for number in range(1, shape[1] + 1):
    latents = np.zeros((num_tasks, *shape), np.float32)
    latents[..., :number] = 1
    latents = rng.permuted(latents, axis=-1)
    keys = jax.random.split(
        jax.random.fold_in(jax.random.key(student.seed), number), num_tasks
    )
    means.append(
        float(jnp.mean(jax.lax.map(lambda x: accuracy(*x), (latents, keys))))
    )
  return means


if __name__ == '__main__':
  script.run(main)

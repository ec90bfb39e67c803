"""What predictors score that know all training functions, without composing.

'nearest' and 'mix' choose with knowledge of the new task's function, so their
scores are upper bounds. 'teacher' composes and is there for comparison.

  mean      the mean of all training functions
  nearest   the training function with the smallest error
  mix       the best linear combination of training functions' outputs
  teacher   the teacher with the task's modules, which composes weights

A learner no better than 'mix' need not have composed modules. Modular
regression is scored by R^2, the hyperteacher by accuracy.

  python -m modular_hyperteacher.studies.in_context.reference_lines

computes the lines of the figures, in some minutes. It needs no training, and
writes in_context_references.csv and, for the hyperteacher,
in_context_hyperteacher_references.csv to data/.
"""

from collections.abc import Iterator
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from modular_hyperteacher import randomness
from modular_hyperteacher.cli import script
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import checked
from modular_hyperteacher.experiments import components
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import measured
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.studies.in_context import modular_regression
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import teacher_student

NAMES = ('mean', 'nearest', 'mix', 'teacher')
# Shares of a pair's first module; training draws all between 1/3 and 2/3.
_NEAREST_SHARES = np.linspace(1 / 3, 2 / 3, 9)
_MIX_SHARES = np.linspace(1 / 3, 2 / 3, 3)
_NUM_FITTED, _NUM_SCORED = 1000, 500  # Inputs.
# Number of examples that `measure_accuracy` needs, as fields of a task.
EXAMPLES = {'num_support': _NUM_FITTED, 'num_query': _NUM_SCORED}
_NUM_DRAWN = 4000  # Training tasks, to find all of their combinations.
EXPERIMENT = 'in_context'
HYPERTEACHER = 'in_context_hyperteacher'
# Experiment -> the score's column.
_SCORES = {EXPERIMENT: 'r2', HYPERTEACHER: 'accuracy'}
# Experiment -> a row per support, seed, split and predictor.
MEASURED = {
    experiment: measured.Table(
        pathlib.Path(__file__).parent / 'data' / f'{experiment}_references.csv'
    )
    for experiment in _SCORES
}


def measure(
    params: teacher_student.TeacherParams,
    task_support: str,
    split: str,
    key: jax.Array,
    num_tasks: int = 64,
) -> dict[str, float]:
  """Returns the R^2 of every predictor: 1 - mean error / mean variance.

  Means are over new tasks of a split.
  """
  num_modules, input_dim, hidden_dim = params.modules.shape
  distribution = modular_regression.make(
      task_support=task_support,
      input_dim=input_dim,
      output_dim=1,
      teacher_hidden_dim=hidden_dim,
      num_support=_NUM_FITTED,
      num_query=_NUM_SCORED,
  )
  support, query = distribution.sample_examples(
      params,
      randomness.stream(key, 'inputs'),
      jnp.ones((1, num_modules)),
      split,
  )
  inputs = np.concatenate([support.inputs, query.inputs])
  respond = jax.jit(
      jax.vmap(modular_regression.respond, in_axes=(None, 0, None))
  )

  def values(latents: jax.typing.ArrayLike) -> np.ndarray:
    """Returns targets of tasks at all inputs, [tasks, inputs], in float64."""
    return np.asarray(respond(params, latents, inputs), float)[..., 0]

  masks = modular_regression.masks_of(task_support)['train']
  known = values(np.array([*_latents(masks, _NEAREST_SHARES)]))
  basis = values(np.array([*_latents(masks, _MIX_SHARES)]))
  keys = jax.random.split(randomness.stream(key, 'tasks'), num_tasks)
  latents = jax.vmap(lambda k: distribution.sample_latent(params, k, split)[0])(
      keys
  )
  errors = {name: [] for name in NAMES}
  variances = []
  for target, composed in zip(values(latents), values(2 * latents)):
    fitted, scored = np.split(target, [_NUM_FITTED])
    distance = ((known[:, :_NUM_FITTED] - fitted) ** 2).mean(1)
    weights, *_ = np.linalg.lstsq(basis[:, :_NUM_FITTED].T, fitted)
    predicted = {
        'mean': known.mean(0),
        'nearest': known[distance.argmin()],
        'mix': weights @ basis,
        'teacher': composed,
    }
    for name, prediction in predicted.items():
      error = (prediction[_NUM_FITTED:] - scored) ** 2
      errors[name].append(error.mean())
    variances.append(scored.var())
  return {
      name: float(1 - np.mean(errors[name]) / np.mean(variances))
      for name in NAMES
  }


def measure_accuracy(
    distribution: base.TaskDistribution,
    params: Any,
    split: str,
    key: jax.Array,
    num_tasks: int = 64,
) -> dict[str, float]:
  """Returns the accuracy of every predictor, for tasks with soft labels.

  Means are over new tasks of a split. The distribution has finitely many tasks,
  with `EXAMPLES` examples.
  """
  input_key = randomness.stream(key, 'inputs')

  @jax.jit
  def respond(latents: jax.Array) -> jax.Array:
    def one_task(latent: jax.Array) -> jax.Array:
      # The same key, so that all tasks have the same inputs.
      batches = distribution.sample_examples(params, input_key, latent, split)
      return jnp.concatenate([batch.targets for batch in batches])

    return jax.vmap(one_task)(latents)

  def draw(split: str, number: int) -> jax.Array:
    keys = jax.random.split(randomness.stream(key, split), number)
    sample = jax.vmap(lambda k: distribution.sample_latent(params, k, split))
    return jax.jit(sample)(keys)

  trained = np.unique(np.asarray(draw('train', _NUM_DRAWN)), axis=0)
  known = np.asarray(respond(jnp.asarray(trained)), float)
  new = np.asarray(respond(draw(split, num_tasks)), float)
  known_labels = known.argmax(-1)
  fitted, targets = (
      labels[:, :_NUM_FITTED].reshape(len(labels), -1).T
      for labels in (known, new)
  )
  all_weights, *_ = np.linalg.lstsq(fitted, targets)
  correct = {name: [] for name in NAMES}
  for labels, weights in zip(new.argmax(-1), all_weights.T):
    agreement = (known_labels == labels)[:, :_NUM_FITTED].mean(1)
    predicted = {
        'mean': known.mean(0).argmax(-1),
        'nearest': known_labels[agreement.argmax()],
        'mix': np.tensordot(weights, known, 1).argmax(-1),
        'teacher': labels,
    }
    for name, prediction in predicted.items():
      correct[name].append((prediction == labels)[_NUM_FITTED:].mean())
  return {name: float(np.mean(values)) for name, values in correct.items()}


def _latents(masks: np.ndarray, shares: np.ndarray) -> Iterator[np.ndarray]:
  """Yields a latent [M] per pair of modules and share of its first."""
  for mask in masks:
    for share in shares:
      latent = np.zeros(len(mask), np.float32)
      latent[mask] = share, 1 - share
      yield latent


def compute(experiment: str) -> pd.DataFrame:
  """Computes the lines of all seeds that are bundled at laptop scale."""
  library = data.Library(data.BUNDLED / 'nothing')
  seeds = sorted(set(library.values(experiment, 'laptop')['seed']))
  rows = []
  runs = {
      run.config['task']['task_support']: run
      for run in reference.described_runs(experiment, 'laptop')
  }
  for support, run in runs.items():
    task = run.config['task']
    training = run.config['training'] | {'seeds': [int(seed) for seed in seeds]}
    built = build.build(run.config | {'training': training}, 1)
    for seed, drawn in zip(
        built.training.seeds, build.draw_tasks(built), strict=True
    ):
      params = drawn.task_params
      key = randomness.stream(jax.random.key(seed), 'reference_lines')
      for split in ('test', 'ood'):
        if task['name'] == 'modular_regression':
          scores = measure(params, support, split, key)
        else:
          block = task | EXAMPLES
          make_task = components.task_entry(block).make
          made = checked.call(make_task, 'task', block)
          scores = measure_accuracy(made, params, split, key)
        rows += [
            {
                'task_support': support,
                'seed': seed,
                'split': split,
                'predictor': name,
                _SCORES[experiment]: value,
            }
            for name, value in scores.items()
        ]
  return pd.DataFrame(rows)


def main() -> None:
  """Computes the lines of both experiments."""
  for experiment in _SCORES:
    frame = compute(experiment)
    MEASURED[experiment].write(frame, '%.4g')
    print(frame.to_string(index=False))


if __name__ == '__main__':
  script.run(main)

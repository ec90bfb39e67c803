"""What predictors score that know all training functions, without composing.

'nearest' and 'mix' choose with knowledge of the new task's function, so their
scores are upper bounds. 'teacher', which composes, is the task itself: 1.

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

from collections.abc import Callable, Iterator
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

NAMES = ('mean', 'nearest', 'mix', 'teacher')
# Shares of a pair's first module; training draws all between 1/3 and 2/3.
_NEAREST_SHARES = np.linspace(1 / 3, 2 / 3, 9)
_MIX_SHARES = np.linspace(1 / 3, 2 / 3, 3)
_NUM_FITTED, _NUM_SCORED = 1000, 500  # Inputs.
# Number of examples that `measure` needs, as fields of a task.
EXAMPLES: dict[str, Any] = {
    'num_support': _NUM_FITTED,
    'num_query': _NUM_SCORED,
}
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
    distribution: base.TaskDistribution,
    params: Any,
    split: str,
    key: jax.Array,
    pairs: np.ndarray | None = None,
    num_tasks: int = 64,
) -> dict[str, float]:
  """Returns the score of every predictor, over new tasks of a split.

  It is the accuracy, for finitely many tasks with soft labels. For modular
  regression it is R^2: 1 - mean error / mean variance.

  Args:
    distribution: the task distribution, with `EXAMPLES` examples.
    params: the parameters of its tasks.
    split: the split of the new tasks.
    key: the key of inputs and tasks.
    pairs: for modular regression, the masks of the pairs that training
      combines, [C, M]; None for other tasks.
    num_tasks: the number of new tasks.
  """
  input_key = randomness.stream(key, 'inputs')

  @jax.jit
  def respond(latents: jax.Array) -> jax.Array:
    def one_task(latent: jax.Array) -> jax.Array:
      # The same key, so that all tasks have the same inputs.
      batches = distribution.sample_examples(params, input_key, latent, split)
      return jnp.concatenate([batch.targets for batch in batches])

    return jax.vmap(one_task)(latents)

  def outputs(latents: jax.typing.ArrayLike) -> np.ndarray:
    """Returns the outputs of tasks at all inputs, [tasks, N, Y], in float64."""
    return np.asarray(respond(jnp.asarray(latents)), float)

  def draw(split: str, stream: str, number: int) -> jax.Array:
    keys = jax.random.split(randomness.stream(key, stream), number)
    sample = jax.vmap(lambda k: distribution.sample_latent(params, k, split))
    return jax.jit(sample)(keys)

  if pairs is None:
    trained = np.asarray(draw('train', 'train', _NUM_DRAWN))
    known = outputs(np.unique(trained, axis=0))
    targets = outputs(draw(split, split, num_tasks))
    return _mean_scores(known, known, targets, _are_right)
  known, basis = (
      outputs(np.array([*_latents(pairs, shares)]))
      for shares in (_NEAREST_SHARES, _MIX_SHARES)
  )
  targets = outputs(draw(split, 'tasks', num_tasks))
  variance = float(targets[:, _NUM_FITTED:].var(1).mean())
  scores = _mean_scores(known, basis, targets, _minus_squared_errors)
  return {name: 1 + score / variance for name, score in scores.items()}


def _mean_scores(
    known: np.ndarray,  # outputs of training functions, [functions, N, Y]
    basis: np.ndarray,  # outputs that 'mix' combines, [functions, N, Y]
    targets: np.ndarray,  # outputs of new tasks, [tasks, N, Y]
    score: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> dict[str, float]:
  """Returns each predictor's mean score on inputs that it was not fitted to.

  `score` takes predictions and targets, [..., N, Y], and returns [..., N].
  """
  columns, fitted = (
      values[:, :_NUM_FITTED].reshape(len(values), -1).T
      for values in (basis, targets)
  )
  all_weights, *_ = np.linalg.lstsq(columns, fitted)
  scores = {name: [] for name in NAMES}
  for target, weights in zip(targets, all_weights.T):
    likeness = score(known[:, :_NUM_FITTED], target[:_NUM_FITTED]).mean(1)
    predicted = {
        'mean': known.mean(0),
        'nearest': known[likeness.argmax()],
        'mix': np.tensordot(weights, basis, 1),
        'teacher': target,
    }
    for name, prediction in predicted.items():
      scores[name].append(score(prediction, target)[_NUM_FITTED:].mean())
  return {name: float(np.mean(values)) for name, values in scores.items()}


def _minus_squared_errors(
    predictions: np.ndarray, targets: np.ndarray
) -> np.ndarray:
  return -((predictions - targets) ** 2).mean(-1)


def _are_right(predictions: np.ndarray, targets: np.ndarray) -> np.ndarray:
  return predictions.argmax(-1) == targets.argmax(-1)


def _latents(masks: np.ndarray, shares: np.ndarray) -> Iterator[np.ndarray]:
  """Yields a latent [1, M] per pair of modules and share of its first."""
  for mask in masks:
    for share in shares:
      latent = np.zeros((1, len(mask)), np.float32)
      latent[0, mask] = share, 1 - share
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
    block = run.config['task'] | EXAMPLES
    is_regression = block['name'] == 'modular_regression'
    pairs = (
        modular_regression.masks_of(support)['train'] if is_regression else None
    )
    made = checked.call(components.task_entry(block).make, 'task', block)
    training = run.config['training'] | {'seeds': [int(seed) for seed in seeds]}
    built = build.build(run.config | {'training': training}, 1)
    for seed, drawn in zip(
        built.training.seeds, build.draw_tasks(built), strict=True
    ):
      params = drawn.task_params
      key = randomness.stream(jax.random.key(seed), 'reference_lines')
      for split in ('test', 'ood'):
        scores = measure(made, params, split, key, pairs)
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

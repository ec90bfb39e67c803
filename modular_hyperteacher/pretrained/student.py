"""A trained model of one seed: adapt, predict, evaluate, decode.

Functions take one task and can be `vmap`ped over tasks. The task distribution
is that of training: the same seed gives the same teacher, mazes and splits.
"""

from collections.abc import Callable
import dataclasses
import functools
import math
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher import untrusted
from modular_hyperteacher.analysis import decoding
from modular_hyperteacher.devices import jax_settings
from modular_hyperteacher.devices import precision
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import components
from modular_hyperteacher.learning import estimates
from modular_hyperteacher.learning import evaluation
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks

Decode = Callable[[models.FastParams], np.ndarray]
_FITTED_ON = 'test'  # Module combinations seen in training.


class Rebuilt:
  """Pickles arrays and `config`, from which `experiment` is built again."""

  def __getstate__(self) -> dict[str, Any]:
    fields: Any = self  # A dataclass.
    names = [field.name for field in dataclasses.fields(fields)]
    return {name: getattr(self, name) for name in names if name != 'experiment'}

  @jax_settings.always
  def __setstate__(self, state: dict[str, Any]) -> None:
    components.allow(state['config'])
    experiment = build.build(state['config'], num_devices=1)
    vars(self).update(state, experiment=experiment)


@dataclasses.dataclass(frozen=True)
class Student(Rebuilt):
  """A trained model and its task distribution."""

  config: dict[str, Any]  # of the run
  experiment: bilevel.BilevelExperiment  # task, model and learner
  seed: int  # of the task distribution and of training
  task_params: Any  # of the task distribution
  evaluation_latents: Any  # [splits, tasks, L, M], of the evaluation tasks
  meta_params: models.MetaParams  # trained

  @functools.cached_property
  def root(self) -> jax.Array:
    """The seed's root key."""
    training = self.experiment.training
    return build.root_keys(training)[training.seeds.index(self.seed)]

  @property
  def splits(self) -> tuple[str, ...]:
    """The splits that tasks can be drawn from."""
    return ('train', *self.experiment.task.evaluation_splits)

  @jax_settings.always
  def sample(self, split: str, key: jax.Array | int) -> tasks.Task:
    """Returns a task: support set, query set and latent [L, M].

    Args:
      split: one of `splits`; 'ood' for combinations never seen in training.
      key: random key of the task, or a seed.

    Raises:
      UserError: if the split is unknown or empty, or the key is of another
        generator than this package's.
    """
    errors.require_choice('split', split, self.splits)
    task_distribution = self.experiment.task
    if not task_distribution.num_combinations(self.task_params, split):
      raise errors.UserError(f"split '{split}' of seed {self.seed} is empty.")
    return self._sample(self.task_params, _as_key(key), split)

  @jax_settings.always
  def adapt(
      self, task: tasks.Task | tasks.Batch, key: jax.Array | int | None = None
  ) -> models.FastParams:
    """Returns fast parameters, adapted to a task or to a support set.

    Args:
      task: a drawn task, or your own support set (`tasks.base.examples`).
      key: models that draw batches from the support set use it; a seed, or
        None for a fixed key.

    Raises:
      UserError: if `task` is a support set, but inner steps draw new examples;
        or if its examples are not like those of the task distribution.
    """
    if not isinstance(task, tasks.Task):
      self._check_support(task)
      if self.config['model']['inner'].get('fresh_support'):
        raise errors.UserError(
            'this model draws new examples at every inner step; adapt it to a'
            ' drawn task, not to a support set.'
        )
      # Adapting to a support set reads neither the query set nor the latent.
      unread = cast(Any, None)
      task = tasks.Task(task, unread, unread)
    default = randomness.stream(self.root, 'adapt')
    key = default if key is None else _as_key(key)
    own = jax_settings.in_32_bits(task)
    return self._adapt(self.meta_params, self.task_params, own, key)

  def _check_support(self, support: tasks.Batch) -> None:
    """Raises UserError for examples of another form than those of a task."""
    if not isinstance(support, tasks.Batch):
      raise errors.UserError(
          f'adapt takes a task or a support set, not {type(support).__name__};'
          ' make one with tasks.base.examples(inputs, targets).'
      )

    def examples(batch: tasks.Batch) -> dict[str, Any]:
      return {'inputs': tasks.dense(batch.inputs), 'targets': batch.targets}

    drawn = jax.eval_shape(
        lambda params, key: examples(
            self.experiment.task.sample(params, key, 'train').support
        ),
        self.task_params,
        self.root,
    )
    for name, array in examples(support).items():
      shape, expected = np.shape(array), drawn[name].shape
      errors.require(
          len(shape) > 0 and shape[1:] == expected[1:],
          f"the shape of the support set's {name}",
          list(shape),
          f'it must be {["N", *expected[1:]]}'.replace("'", ''),
      )
      jax_settings.warn_of_nan(f"the support set's {name}", array)
    parts = tasks.dense(support.inputs), support.targets, support.mask
    lengths = {len(part) for part in parts}
    rule = 'inputs, targets and mask must have the same number of examples'
    errors.require(
        len(lengths) == 1, 'N of the support set', sorted(lengths), rule
    )

  @jax_settings.always
  def predict(self, fast_params: models.FastParams, inputs: Any) -> jax.Array:
    """Returns outputs [N, Y]: logits, action values or regression outputs.

    Args:
      fast_params: what `adapt` returned.
      inputs: [N, X], or compact grid-world observations.
    """
    arguments = jax_settings.in_32_bits((fast_params, inputs))
    return self._predict(self.meta_params, *arguments)

  @jax_settings.always
  def score(
      self, fast_params: models.FastParams, batch: tasks.Batch
  ) -> dict[str, jax.Array]:
    """Returns loss and metrics on examples, such as a task's query set."""
    batch = jax_settings.in_32_bits(batch)
    outputs = self.predict(fast_params, batch.inputs)
    return self.experiment.task.objective.measure(outputs, batch)

  @jax_settings.always
  def evaluate(self) -> dict[str, dict[str, float]]:
    """Returns split -> metric -> mean over the run's evaluation tasks.

    Reproduces the run's own evaluation; NaN for an empty split.
    """
    metrics, _ = self._evaluated
    task = self.experiment.task
    result = {}
    for i, split in enumerate(task.evaluation_splits):
      known = task.num_combinations(self.task_params, split)
      result[split] = {
          name: float(values[i]) if known else math.nan
          for name, values in metrics.items()
      }
    return result

  @jax_settings.always
  def fit_decoder(self) -> Decode:
    """Returns `decode(fast_params) -> [L, M]`, a linear decoder of the latent.

    Fitted as in `analysis.decoding`: by ridge regression, to parameters adapted
    to evaluation tasks whose combinations were seen in training.

    Raises:
      UserError: if the model is given the task, and adapts nothing.
    """
    _, adapted = self._evaluated
    if not jax.tree.leaves(adapted):
      raise errors.UserError(
          f"'{self.config['model']['name']}' is given the task and adapts"
          ' nothing, so there is nothing to decode from.'
      )
    splits = self.experiment.task.evaluation_splits
    rule = f"must have '{_FITTED_ON}', combinations seen in training"
    errors.require(_FITTED_ON in splits, 'evaluation_splits', splits, rule)
    split_index = splits.index(_FITTED_ON)
    weights = decoding.fit(
        decoding.flatten(adapted), self.evaluation_latents[split_index]
    )

    @jax_settings.always
    def decode(fast_params: models.FastParams) -> np.ndarray:
      features = decoding.flatten(jax.tree.map(lambda x: x[None], fast_params))
      return np.asarray(decoding.predict(weights, features))[0]

    return decode

  @functools.cached_property
  def _sample(self) -> Callable[..., tasks.Task]:
    # One program: operation by operation, a first task takes seconds.
    return self._compiled(self.experiment.task.sample, static_argnums=2)

  @functools.cached_property
  def _adapt(self) -> estimates.AdaptToTask:
    return self._compiled(self.experiment.learner.adapt)

  @functools.cached_property
  def _predict(self) -> Callable[..., jax.Array]:
    return self._compiled(self.experiment.model.predict)

  def _compiled(self, function: Any, **options: Any) -> Any:
    level = self.experiment.training.matmul_precision
    return jax.jit(precision.at(level, function), **options)

  @functools.cached_property
  def _evaluated(self) -> tuple[dict[str, np.ndarray], Any]:
    """Metrics [splits], and parameters adapted to the tasks of _FITTED_ON."""
    evaluate = evaluation.make_evaluate(
        self.experiment.task,
        self.experiment.learner,
        self.experiment.execution.task_chunk_size,
        kept_splits=(_FITTED_ON,),
    )
    # One device divides any number of tasks.
    on_device = jax.pmap(
        precision.at(self.experiment.training.matmul_precision, evaluate),
        axis_name=outer_loop.DEVICE_AXIS,
        devices=jax.local_devices()[:1],
    )
    arguments = (
        self.meta_params,
        self.task_params,
        self.evaluation_latents,
        randomness.stream(self.root, 'evaluation'),
    )
    metrics, kept = jax.tree.map(
        np.asarray, on_device(*jax.tree.map(lambda x: x[None], arguments))
    )
    return (
        {name: values[0] for name, values in metrics.items()},
        jax.tree.map(lambda x: x[0, 0], kept),
    )


def _as_key(key: Any) -> jax.Array:
  """Returns a key of this package's generator; an integer is a seed."""
  if isinstance(key, (int, np.integer)):
    rule = 'a seed must be at least 0 and less than 2^32'
    seed = untrusted.whole_number(key, 'key', 0, 2**32, rule)
    return randomness.root_key(seed)
  if isinstance(key, jax.Array) and key.shape == (2,) and key.dtype == 'uint32':
    return jax.random.wrap_key_data(key, impl=randomness.GENERATOR)
  is_key = isinstance(key, jax.Array) and key.shape == ()
  is_key = is_key and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
  errors.require(
      is_key and str(jax.random.key_impl(key)) == randomness.GENERATOR,
      'key',
      getattr(key, 'dtype', untrusted.shorten(key)),
      'it must be a seed, or a key such as'
      f" jax.random.key(1, impl='{randomness.GENERATOR}')",
  )
  return key

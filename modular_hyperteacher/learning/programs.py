"""The compiled programs of an experiment: many seeds, many devices.

A program maps one seed's pure function over seeds (`vmap`, inside of a device)
and over devices (`pmap`, the tasks of a meta-batch). One device and one seed
take the same path. Arguments and results are replicated over devices and have
seeds in front: `[D, R, ...]` on the devices, `[R, ...]` on the host.
"""

from typing import Any, Sequence

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.learning import evaluation
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.tasks import base as tasks

# The library of small matrix products that XLA picks by default on a CPU runs
# a batch of them on one core; without it they are spread over all.
_CPU_OPTIONS = {'xla_cpu_experimental_ynn_fusion_type': ''}


def replicate(tree: Any) -> Any:
  """Copies host arrays `[...]` to all local devices: `[D, ...]`."""
  num_devices = jax.local_device_count()
  return jax.tree.map(
      lambda x: jnp.broadcast_to(x, (num_devices,) + jnp.shape(x)), tree
  )


def fetch(tree: Any) -> Any:
  """Copies the first device's part of `[D, ...]` to the host: `[...]`."""
  return jax.tree.map(
      lambda x: np.asarray(x.addressable_shards[0].data)[0], tree
  )


class Programs:
  """Initialisation, training and evaluation of one experiment's seeds."""

  def __init__(
      self,
      task: tasks.TaskDistribution,
      learner: outer_loop.Learner,
      roots: Sequence[jax.Array],
      task_params: Sequence[tasks.TaskParams],
      *,
      num_evaluation_tasks: int,
      task_chunk_size: int | None,
  ):
    """Prepares; nothing is compiled before it is called.

    Args:
      task: the distribution to draw from.
      learner: the algorithm.
      roots: one root key per seed.
      task_params: one `task.init` per seed.
      num_evaluation_tasks: tasks per split at an evaluation.
      task_chunk_size: tasks computed at once on a device; None for all.
    """
    self._learner = learner
    self._init_keys = jnp.stack([randomness.stream(k, 'init') for k in roots])
    self._task_params = replicate(
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *task_params)
    )
    self._data_keys = _replicated_keys(roots, 'data')
    self._evaluation_keys = _replicated_keys(roots, 'evaluation')
    evaluate = evaluation.make_evaluate(
        task, learner, num_evaluation_tasks, task_chunk_size
    )
    self._train = _Compiled(self._train_steps, num_broadcast=1)
    self._evaluate = _Compiled(jax.vmap(evaluate))

  def init(self) -> outer_loop.TrainState:
    """Returns the state before the first step, on the devices."""
    return replicate(jax.jit(jax.vmap(self._learner.init))(self._init_keys))

  def train(
      self, state: outer_loop.TrainState, num_steps: int
  ) -> tuple[outer_loop.TrainState, outer_loop.Metrics]:
    """Takes outer steps; returns the state and the last step's metrics.

    The number of steps is an argument of the program, not part of it: however
    a run is cut into calls, the same code computes the same numbers.
    """
    return self._train(
        state, self._task_params, self._data_keys, np.int32(num_steps)
    )

  def evaluate(self, meta_params: Any) -> evaluation.Evaluation:
    """Returns metrics, metric -> [D, R, splits], of parameters [D, R, ...]."""
    return self._evaluate(
        meta_params, self._task_params, self._evaluation_keys
    )

  def _train_steps(self, state, task_params, data_keys, num_steps):
    step = jax.vmap(self._learner.step)

    def body(_, carry):
      state, _ = carry
      return step(state, task_params, data_keys)

    _, shapes = jax.eval_shape(step, state, task_params, data_keys)
    metrics = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    return lax.fori_loop(0, num_steps, body, (state, metrics))


def _replicated_keys(roots, name):
  return replicate(jnp.stack([randomness.stream(k, name) for k in roots]))


class _Compiled:
  """A function of replicated arguments, compiled at its first call."""

  def __init__(self, function, num_broadcast: int = 0):
    self._function = function
    self._num_broadcast = num_broadcast
    self._program = None

  def __call__(self, *args):
    if self._program is None:
      mapped = len(args) - self._num_broadcast
      lowered = jax.pmap(
          self._function,
          axis_name=outer_loop.DEVICE_AXIS,
          in_axes=(0,) * mapped + (None,) * self._num_broadcast,
      ).lower(*args)
      self._program = _compile(lowered)
    return self._program(*args)


def _compile(lowered):
  if jax.default_backend() != 'cpu':
    return lowered.compile()
  try:
    return lowered.compile(compiler_options=_CPU_OPTIONS)
  except jax.errors.JaxRuntimeError:  # An XLA that does not know the option.
    return lowered.compile()

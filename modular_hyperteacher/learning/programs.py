"""The compiled programs of an experiment: many seeds, many devices.

A program maps one seed's pure function over seeds (`vmap`, inside of a device)
and over devices (`pmap`, the tasks of a meta-batch). One device and one seed
take the same path. Arguments and results are replicated over devices and have
seeds in front: `[D, R, ...]` on the devices, `[R, ...]` on the host. Of
several processes (`jax.distributed`), each passes and gets the part of its own
devices, while indices and means run over the devices of all.
"""

from concurrent import futures
from typing import Any, Callable, Mapping, NamedTuple, Sequence

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import processes
from modular_hyperteacher import randomness
from modular_hyperteacher.learning import outer_loop


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


def fetch_divided(tree: Any) -> Any:
  """Copies `[D, R, K, tasks / D, ...]` to the host: `[R, K, tasks, ...]`."""

  def fetch_leaf(x):
    local = [np.asarray(shard.data)[0] for shard in x.addressable_shards]
    shares = [iter(share) for share in processes.gather(np.stack(local))]
    in_order = [next(shares[d.process_index]) for d in jax.devices()]
    return np.concatenate(in_order, axis=2)

  return jax.tree.map(fetch_leaf, tree)


class World(NamedTuple):
  """What one seed's tasks are drawn from."""

  task_params: Any
  # What decides the tasks of evaluation: of the bilevel system, an array
  # [splits, tasks, L, M].
  evaluation_latents: Any


Evaluation = Mapping[str, jax.Array]  # metric -> [splits]
# (meta_params [R, ...], kept [R, kept splits, tasks, ...]), on the host ->
# split -> metric -> [R]
Analyse = Callable[[Any, Any], dict[str, dict[str, np.ndarray]]]


class System(NamedTuple):
  """What is trained: all that a run needs to know, as functions of one seed.

  `step` and `evaluate` are pure and run inside of a mapped axis named
  `outer_loop.DEVICE_AXIS`, over whose devices the tasks are divided. The other
  functions run on the host.
  """

  evaluation_splits: tuple[str, ...]  # 'valid' is one of them
  num_params: tuple[int, int]  # meta, fast
  draw_world: Callable[[jax.Array], World]  # (the seed's root key)
  # (task_params, split) -> how many different tasks a split holds. 0: there is
  # nothing to measure.
  num_combinations: Callable[[Any, str], int]
  init: Callable[[jax.Array], outer_loop.TrainState]
  # (state, task_params, data_key) -> state, metrics
  step: Callable[..., tuple[outer_loop.TrainState, outer_loop.Metrics]]
  # (meta_params, task_params, evaluation_latents, key) -> metrics of all
  # splits, and what is kept of this device's tasks for the analysis, [kept
  # splits, tasks / D, ...]
  evaluate: Callable[..., tuple[Evaluation, Any]]
  # (worlds, roots) -> what is measured after the last step, or None.
  make_analyse: Callable[
      [Sequence[World], Sequence[jax.Array]], Analyse | None
  ]


class Programs:
  """Initialisation, training and evaluation of one experiment's seeds."""

  def __init__(
      self,
      system: System,
      roots: Sequence[jax.Array],
      worlds: Sequence[World],
      optimise: bool = True,
  ):
    """Prepares; nothing is compiled before `compile` or a first call.

    Args:
      system: what to train.
      roots: one root key per seed.
      worlds: one per seed.
      optimise: if False, compiles in less time programs that run slower.
    """
    options = _compiler_options(optimise)
    self._init = jax.jit(jax.vmap(system.init), compiler_options=options)
    self._init_keys = _stack_streams(roots, 'init')
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *worlds)
    self._task_params, self._latents = replicate(stacked)
    self._data_keys = replicate(_stack_streams(roots, 'data'))
    self._evaluation_keys = replicate(_stack_streams(roots, 'evaluation'))
    step = _over_seeds(system.step, len(roots))
    self._train = _Compiled(_make_train(step), options, num_broadcast=1)
    evaluate = _over_seeds(system.evaluate, len(roots))
    self._evaluate = _Compiled(evaluate, options)

  def init(self) -> outer_loop.TrainState:
    """Returns the state before the first step, on the devices."""
    return replicate(self._init(self._init_keys))

  def compile(self, state: outer_loop.TrainState) -> None:
    """Compiles training and evaluation, side by side."""
    with futures.ThreadPoolExecutor() as pool:
      for done in (
          pool.submit(self._train.compile, *self._train_arguments(state, 1)),
          pool.submit(
              self._evaluate.compile,
              *self._evaluate_arguments(state.meta_params),
          ),
      ):
        done.result()

  def compile_training(
      self, state: outer_loop.TrainState
  ) -> jax.stages.Compiled:
    """Compiles training alone, and returns the program to be looked at."""
    return self._train.compile(*self._train_arguments(state, 1))

  def train(
      self, state: outer_loop.TrainState, num_steps: int
  ) -> tuple[outer_loop.TrainState, outer_loop.Metrics]:
    """Takes outer steps; returns the state and the last step's metrics.

    The number of steps is an argument of the program, not part of it: however
    a run is cut into calls, the same code computes the same numbers.
    """
    return self._train(*self._train_arguments(state, num_steps))

  def evaluate(self, meta_params: Any) -> tuple[Evaluation, Any]:
    """Evaluates parameters [D, R, ...].

    Returns:
      Metrics, metric -> [D, R, splits]; and what is kept of tasks, [D, R, kept
      splits, tasks / D, ...].
    """
    return self._evaluate(*self._evaluate_arguments(meta_params))

  def _train_arguments(self, state, num_steps):
    return state, self._task_params, self._data_keys, np.int32(num_steps)

  def _evaluate_arguments(self, meta_params):
    return meta_params, self._task_params, self._latents, self._evaluation_keys


def _compiler_options(optimise):
  """Leaves out LLVM's optimisations, most of what a CPU's code costs to make.

  Programs of several processes are compiled at their first call, which takes no
  options.
  """
  if optimise or jax.default_backend() != 'cpu' or jax.process_count() > 1:
    return None
  return {'xla_backend_optimization_level': 0}


def _over_seeds(function, num_seeds):
  """Maps a function of one seed over the leading axis of its arguments."""
  if num_seeds > 1:
    return jax.vmap(function)

  def single(*args):
    # An axis of size one would make every matrix product a batched one.
    results = function(*jax.tree.map(lambda x: x[0], args))
    return jax.tree.map(lambda x: x[None], results)

  return single


def _make_train(step):
  """Returns a function that takes a given number of steps of all seeds."""
  # The inner `jit` lets the two uses below share one trace.
  step = jax.jit(step)

  def train(state, task_params, data_keys, num_steps):
    _, shapes = jax.eval_shape(step, state, task_params, data_keys)
    metrics = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    return lax.fori_loop(
        0,
        num_steps,
        lambda _, carry: step(carry[0], task_params, data_keys),
        (state, metrics),
    )

  return train


def _stack_streams(roots, name):
  return jnp.stack([randomness.stream(root, name) for root in roots])


class _Compiled:
  """A function of replicated arguments, compiled at its first call."""

  def __init__(self, function, options, num_broadcast: int = 0):
    self._function = function
    self._options = options
    self._num_broadcast = num_broadcast
    self._program = None

  def compile(self, *args):
    """Compiles for arguments like these."""
    mapped = len(args) - self._num_broadcast
    self._program = jax.pmap(
        self._function,
        axis_name=outer_loop.DEVICE_AXIS,
        in_axes=(0,) * mapped + (None,) * self._num_broadcast,
    )
    # For several processes, JAX compiles a `pmap` at its first call only.
    if jax.process_count() == 1:
      self._program = self._program.lower(*args).compile(self._options)
    return self._program

  def __call__(self, *args):
    if self._program is None:
      self.compile(*args)
    return self._program(*args)


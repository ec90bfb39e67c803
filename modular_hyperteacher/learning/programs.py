"""The compiled programs of an experiment, for many seeds and devices.

A program maps the pure function of one seed over seeds (`vmap`) and over
devices (`pmap`), which divide the tasks of a meta-batch. Arguments and results
are replicated over devices, with seeds as the next axis: `[D, R, ...]` on
devices, `[R, ...]` on the host. With several processes (`jax.distributed`),
each passes and receives the arrays of its own devices only, but device indices
and means cover all devices.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.devices import compilation_options
from modular_hyperteacher.devices import jax_settings
from modular_hyperteacher.devices import multihost
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.tasks import base as tasks


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

  def fetch_leaf(x: jax.Array) -> np.ndarray:
    local = [np.asarray(shard.data)[0] for shard in x.addressable_shards]
    shares = [iter(share) for share in multihost.gather(np.stack(local))]
    in_order = [next(shares[d.process_index]) for d in jax.devices()]
    return np.concatenate(in_order, axis=2)

  return jax.tree.map(fetch_leaf, tree)


class SeedTasks(NamedTuple):
  """The parameters of one seed's tasks, and its evaluation tasks."""

  task_params: Any
  evaluation_latents: Any  # [splits, tasks, L, M] in the bilevel system


Evaluation = Mapping[str, jax.Array]  # metric -> [splits]

# For one seed: (meta_params, task_params, evaluation_latents, key) -> metrics,
# and results to analyse, [kept splits, tasks / D, ...].
Evaluate = Callable[[Any, Any, Any, jax.Array], tuple[Evaluation, Any]]

# For the trained seeds, on the host: (meta_params [R, ...], kept [R, kept
# splits, tasks, ...]) -> split -> metric -> [R].
Analyse = Callable[[Any, Any], dict[str, dict[str, np.ndarray]]]

# For one seed, on the host: (its tasks, root key, meta_params, kept [kept
# splits, tasks, ...]) -> split -> metric -> value.
AnalyseSeed = Callable[
    [SeedTasks, jax.Array, Any, Any], Mapping[str, Mapping[str, float]]
]


def over_seeds(
    analyse_seed: AnalyseSeed | None,
    seed_tasks: Sequence[SeedTasks],
    roots: Sequence[jax.Array],
) -> Analyse | None:
  """Returns the analysis of all seeds, given that of one; None for none.

  There is one `SeedTasks` and one root key per seed.
  """
  if analyse_seed is None:
    return None

  def analyse(meta_params: Any, kept: Any) -> dict[str, dict[str, np.ndarray]]:
    by_seed = [
        analyse_seed(
            *of_seed, *jax.tree.map(lambda x, i=i: x[i], (meta_params, kept))
        )
        for i, of_seed in enumerate(zip(seed_tasks, roots, strict=True))
    ]
    return {
        split: {
            metric: np.array([seed[split][metric] for seed in by_seed])
            for metric in metrics
        }
        for split, metrics in by_seed[0].items()
    }

  return analyse


class System(NamedTuple):
  """The interface of a trainable system, as functions of one seed.

  `step` and `evaluate` are pure and run inside a mapped axis named
  `outer_loop.DEVICE_AXIS`, over whose devices the tasks are divided. The other
  functions run on the host.
  """

  evaluation_splits: tuple[str, ...]  # 'valid' is one of them
  num_params: tuple[int, int]  # meta, fast
  draw_tasks: Callable[[jax.Array], SeedTasks]  # takes the seed's root key
  num_combinations: tasks.NumCombinations
  init: Callable[[jax.Array], outer_loop.TrainState]
  step: outer_loop.Step
  evaluate: Evaluate
  analyse: AnalyseSeed | None  # of some evaluations; None for no analysis
  # split -> number of combinations, if it is the same for all seeds.
  fixed_counts: Mapping[str, int] | None = None
  analysed_always: bool = False  # Whether at every evaluation.


class Programs:
  """Initialisation, training and evaluation of one experiment's seeds."""

  def __init__(
      self,
      system: System,
      roots: Sequence[jax.Array],
      seed_tasks: Sequence[SeedTasks],
      optimise: bool = True,
  ) -> None:
    """Prepares the programs, which `compile` or a first call compiles.

    There is one root key and one `SeedTasks` per seed. With `optimise` False,
    compiles faster to slower programs.
    """
    # The programs of several processes are compiled at their first call, which
    # takes no options.
    quick = jax.default_backend() == 'cpu' and jax.process_count() == 1
    options = compilation_options.QUICK if quick and not optimise else None
    self._init: Any = jax.jit(jax.vmap(system.init), compiler_options=options)
    self._init_keys = _stack_streams(roots, 'init')
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *seed_tasks)
    self._task_params, self._latents = replicate(stacked)
    self._data_keys = replicate(_stack_streams(roots, 'data'))
    self._evaluation_keys = replicate(_stack_streams(roots, 'evaluation'))
    step = _map_seeds(system.step, len(roots))
    self._train = _Compiled(_make_train(step), options, num_broadcast=1)
    evaluate = _map_seeds(system.evaluate, len(roots))
    self._evaluate = _Compiled(evaluate, options)

  @jax_settings.fixed_draws()
  def init(self) -> outer_loop.TrainState:
    """Returns the state before the first step, on the devices."""
    return replicate(self._init(self._init_keys))

  @jax_settings.fixed_draws()
  def compile_init(self) -> outer_loop.TrainState:
    """Compiles `init`; returns the shapes of its state."""
    shapes = self._init.eval_shape(self._init_keys)
    self._init = self._init.lower(self._init_keys).compile()
    devices = jax.local_device_count()
    return jax.tree.map(lambda x: x.update(shape=(devices, *x.shape)), shapes)

  def compile(self, state: outer_loop.TrainState) -> None:
    """Compiles training and evaluation in parallel, if not done yet.

    The state is what `init` returns, or its shapes.
    """
    evaluate_arguments = self._evaluate_arguments(state.meta_params)
    with futures.ThreadPoolExecutor() as pool:
      training = pool.submit(self.compile_training, state)
      pool.submit(self._evaluate.compile, *evaluate_arguments).result()
      training.result()

  def compile_training(
      self, state: outer_loop.TrainState
  ) -> jax.stages.Compiled:
    """Compiles and returns the training program."""
    return self._train.compile(*self._train_arguments(state, 1))

  def train(
      self, state: outer_loop.TrainState, num_steps: int
  ) -> tuple[outer_loop.TrainState, outer_loop.Metrics]:
    """Takes outer steps; returns the state and the last step's metrics.

    The number of steps is an argument of the program, not a constant in it, so
    results do not depend on how a run is divided into calls.
    """
    return self._train(*self._train_arguments(state, num_steps))

  def evaluate(self, meta_params: Any) -> tuple[Evaluation, Any]:
    """Evaluates parameters [D, R, ...].

    Returns metric -> [D, R, splits], and [D, R, kept splits, tasks / D, ...]
    to analyse.
    """
    return self._evaluate(*self._evaluate_arguments(meta_params))

  def _train_arguments(
      self, state: outer_loop.TrainState, num_steps: int
  ) -> tuple[Any, ...]:
    return state, self._task_params, self._data_keys, np.int32(num_steps)

  def _evaluate_arguments(self, meta_params: Any) -> tuple[Any, ...]:
    return meta_params, self._task_params, self._latents, self._evaluation_keys


def _map_seeds(
    function: Callable[..., Any], num_seeds: int
) -> Callable[..., Any]:
  """Maps a function of one seed over the leading axis of its arguments."""
  if num_seeds > 1:
    return jax.vmap(function)

  def single(*args: Any) -> Any:
    # `vmap` over a single seed would turn every matrix product into a batched
    # one.
    results = function(*jax.tree.map(lambda x: x[0], args))
    return jax.tree.map(lambda x: x[None], results)

  return single


def _make_train(step: Callable[..., Any]) -> Callable[..., Any]:
  """Returns `train(state, task_params, data_keys, num_steps)`, of all seeds."""
  # With `jit`, the two uses below share one trace.
  step = jax.jit(step)

  def train(
      state: outer_loop.TrainState,
      task_params: Any,
      data_keys: jax.Array,
      num_steps: jax.Array,
  ) -> tuple[outer_loop.TrainState, outer_loop.Metrics]:
    _, shapes = jax.eval_shape(step, state, task_params, data_keys)
    metrics = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    return lax.fori_loop(
        0,
        num_steps,
        lambda _, carry: step(carry[0], task_params, data_keys),
        (state, metrics),
    )

  return train


def _stack_streams(roots: Sequence[jax.Array], name: str) -> jax.Array:
  return jnp.stack([randomness.stream(root, name) for root in roots])


class _Compiled:
  """A function of replicated arguments, compiled at its first call.

  The last `num_broadcast` arguments are the same on all devices.
  """

  def __init__(
      self,
      function: Callable[..., Any],
      options: dict[str, int] | None,
      num_broadcast: int = 0,
  ) -> None:
    self._function = function
    self._options = options
    self._num_broadcast = num_broadcast
    self._program = None

  @jax_settings.fixed_draws()
  def compile(self, *args: Any) -> Any:
    """Compiles for arguments of these shapes, once; returns the program."""
    if self._program is not None:
      return self._program
    mapped = len(args) - self._num_broadcast
    program = jax.pmap(
        self._function,
        axis_name=outer_loop.DEVICE_AXIS,
        in_axes=(0,) * mapped + (None,) * self._num_broadcast,
    )
    # With several processes, JAX compiles a `pmap` only at its first call.
    if jax.process_count() == 1:
      program = program.lower(*args).compile(self._options)
    self._program = program
    return program

  @jax_settings.fixed_draws()
  def __call__(self, *args: Any) -> Any:
    return self.compile(*args)(*args)

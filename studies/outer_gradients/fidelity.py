"""How far is every estimate from the outer gradient? Trains next to nothing.

  python -m modular_hyperteacher.studies.outer_gradients.fidelity

Linear hypernetworks of five seeds, before training and after 300 unrolled
steps; the mean gradient over 16 training tasks, in float64; plain gradient
descent inside. Two references:

  bilevel:   3,000 inner steps, then implicit differentiation by 200 conjugate
             gradients
  unrolled:  through the N steps of the free phase

Where gradients take norms of embeddings as constants, the inner loop descends
no loss, and only the second exists. It writes data/fidelity.csv.gz, which
figure `cr_fidelity` and claims CR-1, CR-2 and CR-8 read.
"""

from collections.abc import Callable, Iterator
import functools
import gzip
import itertools
import pathlib
from typing import Any, cast, NamedTuple

import jax
from jax import flatten_util
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd

from modular_hyperteacher import files
from modular_hyperteacher.cli import script
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.learning import estimates
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.studies.outer_gradients import quadratic
from modular_hyperteacher.studies.outer_gradients import rules
from modular_hyperteacher.studies.outer_gradients import surrogates
from modular_hyperteacher.studies.outer_gradients.configs import blocks

PATH = pathlib.Path(__file__).parent / 'data' / 'fidelity.csv.gz'
EXPERIMENT = 'cr_fidelity'  # For claims; there is no config of this name.
CELL = ('rule', 'num_free', 'num_last', 'beta', 'step', 'stop_norm')
METRICS = ('error', 'cosine', 'error_unrolled', 'cosine_unrolled')
BETAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
FREE, LAST = (10, 50, 200), (5, 10, 25)
STEPS = (0, 300)
_NUM_SEEDS, _NUM_TASKS, _CONVERGED, _ITERATIONS = 5, 16, 3000, 200
# The inner loop must settle at a minimum, or there is no bilevel gradient. With
# those of the study's trainings, 1 and 0.01, it does not in thousands of steps.
_RATE, _PROXIMAL = 0.1, 0.1
_CONTRASTS = (
    'contrastive_standard',
    'contrastive_symmetric',
    'contrastive_control',
    'linearised_control',
)
# Contrasts, and T, where gradients take norms as constants.
_STOPPED = ('contrastive_symmetric', 'linearised_control')
_STOPPED_LAST = 10
# The outer loop's, which estimates do not depend on.
_OUTER: dict[str, Any] = {
    'learning_rate': 1.0,
    'clip_norm': None,
    'meta_batch_size': 1,
    'weight_decay': 0.0,
    'max_consecutive_skips': 0,
}

_SOLVES = (
    ('t1_t2', 0, surrogates.identity),
    ('implicit_cg', 5, surrogates.conjugate_gradients(5)),
    ('implicit_neumann', 10, surrogates.neumann(10, _RATE)),
)
_EXACT = surrogates.conjugate_gradients(_ITERATIONS)

# (meta_params, task, key, fast parameters after the free phase, beta, T) ->
# scalar
_Estimate = Callable[..., jax.Array]


class _Point(NamedTuple):
  """Where gradients are measured."""

  meta_params: Any
  drawn: Any  # Tasks, [tasks, ...].
  keys: jax.Array  # [tasks]


def _mean_gradient(estimate: _Estimate) -> Callable[..., jax.Array]:
  """Returns (point, free [tasks, ...], beta, T) -> the mean's gradient, [P]."""

  @jax.jit
  def gradient(
      point: _Point, free: Any, beta: Any = 0.0, num_last: Any = 0
  ) -> jax.Array:
    def loss(meta_params: Any) -> jax.Array:
      each = jax.vmap(lambda *x: estimate(meta_params, *x, beta, num_last))
      return each(point.drawn, point.keys, free).mean()

    return flatten_util.ravel_pytree(jax.grad(loss)(point.meta_params))[0]

  return gradient


class _Estimators:
  """All estimates of one model; each is compiled at its first call.

  Attributes:
    free: N -> (point) -> fast parameters after N steps, [tasks, ...].
    rules: N, rule -> gradient of a rule with its own free phase.
    contrasts: rule -> gradient, given the free phase.
    implicit: solver -> gradient, given the free phase.
  """

  def __init__(self, built: bilevel.BilevelExperiment) -> None:
    """Takes the task and the model; the inner loop is gradient descent."""
    problems = {n: self._problem(built, n) for n in (*FREE, _CONVERGED)}
    self.free = {n: self._free(problem) for n, problem in problems.items()}
    self.rules = {
        (n, rule): self._rule(rule.make_estimate(problems[n]))
        for n in FREE
        for rule in _rules(n)
    }
    problem = problems[FREE[0]]  # All have the same losses.
    self.contrasts = {
        name: _mean_gradient(
            functools.partial(self._contrastive, problem, contrast)
        )
        for name, contrast in surrogates.CONTRASTS.items()
    }
    self.implicit = {
        solve: _mean_gradient(functools.partial(self._implicit, problem, solve))
        for solve in (_EXACT, *(solve for *_, solve in _SOLVES))
    }

  @staticmethod
  def _problem(
      built: bilevel.BilevelExperiment, num_steps: int
  ) -> estimates.Problem:
    inner = inner_loop.InnerConfig(
        num_steps=num_steps, learning_rate=_RATE, solver='sgd'
    )
    return estimates.Problem(built.task, built.model, inner)

  @staticmethod
  def _free(problem: estimates.Problem) -> Callable[[_Point], Any]:
    return jax.jit(
        lambda point: jax.vmap(
            lambda *x: problem.adapt(point.meta_params, None, *x)
        )(point.drawn, point.keys)
    )

  @staticmethod
  def _rule(estimate: estimates.Estimate) -> Callable[..., jax.Array]:
    return _mean_gradient(
        lambda meta_params, task, key, *_: estimate(
            meta_params, None, task, key
        )[0]
    )

  @staticmethod
  def _contrastive(
      problem: estimates.Problem,
      contrast: surrogates.Contrast,
      meta_params: Any,
      task: Any,
      key: jax.Array,
      free: Any,
      beta: jax.Array,
      num_last: jax.Array,
  ) -> jax.Array:
    del key
    return surrogates.contrastive(
        surrogates.bind(problem, task),
        meta_params,
        free,
        contrast,
        beta,
        optax.sgd(_RATE),
        num_last,
        blocks.MAX_QUERY_LOSS,
    )

  @staticmethod
  def _implicit(
      problem: estimates.Problem,
      solve: surrogates.Solve,
      meta_params: Any,
      task: Any,
      key: jax.Array,
      free: Any,
      *_: jax.Array,
  ) -> jax.Array:
    del key
    losses_at = surrogates.bind(problem, task)
    return surrogates.implicit(losses_at, meta_params, free, solve)


def _rules(num_free: int) -> list[outer_loop.OuterConfig]:
  """Returns rules with a free phase of their own, the unrolled one first."""
  found = [outer_loop.OuterConfig(**_OUTER)]
  if num_free < FREE[-1]:
    found.append(rules.FirstOrder(gradient='first_order', **_OUTER))
    found += [
        rules.Truncated(gradient='truncated', num_differentiated=last, **_OUTER)
        for last in (5, 10)
        if last < num_free
    ]
  return found


def _points(
    built: bilevel.BilevelExperiment,
) -> Iterator[tuple[int, int, _Point]]:
  """Yields seed, outer step, and the point there, in float64."""
  seed_tasks = build.draw_tasks(built)
  trained = programs.Programs(
      built.system, build.root_keys(built.training), seed_tasks
  )
  state, done = trained.init(), 0
  sample = jax.jit(
      jax.vmap(lambda x, key: built.task.sample(x, key, 'train'), (None, 0))
  )

  def double(x: jax.Array) -> jax.Array:
    return x.astype(jnp.float64) if x.dtype == jnp.float32 else x

  for step in STEPS:
    state, _ = trained.train(state, step - done)
    done = step
    meta_params = programs.fetch(state.meta_params)
    for i, seed in enumerate(built.training.seeds):
      keys = jax.random.split(jax.random.key(seed), 2 * _NUM_TASKS)
      drawn = sample(seed_tasks[i].task_params, keys[:_NUM_TASKS])
      own = jax.tree.map(lambda x, i=i: jnp.asarray(x[i]), meta_params)
      with jax.enable_x64(True):
        own, drawn = jax.tree.map(double, (own, drawn))
        yield seed, step, _Point(own, drawn, keys[_NUM_TASKS:])


def _estimates(
    estimators: _Estimators, point: _Point, stop_norm: bool
) -> Iterator[tuple[str, int, int, float, np.ndarray]]:
  """Yields rule, N, T (0: none), beta (NaN: none) and the estimate, [P]."""
  names = _STOPPED if stop_norm else _CONTRASTS
  for num_free in FREE:
    free = estimators.free[num_free](point)
    for rule in _rules(num_free)[: 1 if stop_norm else None]:
      gradient = estimators.rules[num_free, rule](point, free)
      last = getattr(rule, 'num_differentiated', 0)
      yield rule.gradient, num_free, last, np.nan, np.asarray(gradient)
    for name, last in itertools.product(names, LAST):
      if stop_norm and last != _STOPPED_LAST:
        continue
      for beta in BETAS:
        gradient = estimators.contrasts[name](point, free, beta, last)
        yield name, num_free, last, beta, np.asarray(gradient)
    if not stop_norm and num_free < FREE[-1]:
      for name, last, solve in _SOLVES:
        gradient = estimators.implicit[solve](point, free)
        yield name, num_free, last, np.nan, np.asarray(gradient)


def measure(stop_norm: bool, preset: str = 'laptop') -> pd.DataFrame:
  """Returns a row per seed, point and estimate; see `CELL` and `METRICS`.

  Args:
    stop_norm: whether gradients take norms of embeddings as constants.
    preset: the preset of the task and the model.
  """
  made = blocks.base(preset, _NUM_SEEDS)
  model = blocks.proximal(
      made,
      'linear_hypernetwork',
      FREE[0],
      {},
      stop_norm=stop_norm,
      proximal=_PROXIMAL,
  )
  model['inner']['learning_rate'] = _RATE
  made['models'] = {'measured': model}
  grid = dict(model=['measured'])
  (run,) = sweeps.expand(experiment.make(EXPERIMENT, preset, grid, **made))
  built = cast(bilevel.BilevelExperiment, build.build(run.config, 1))
  estimators = _Estimators(built)
  rows = []
  for seed, step, point in _points(built):
    end = estimators.free[_CONVERGED](point)
    exact = np.asarray(estimators.implicit[_EXACT](point, end))
    found = list(_estimates(estimators, point, stop_norm))
    unrolled = {n: g for rule, n, _, _, g in found if rule == 'unrolled'}
    for rule, num_free, last, beta, gradient in found:
      to_exact = quadratic.compare(gradient, exact)
      if stop_norm:
        to_exact = np.nan, np.nan
      to_unrolled = quadratic.compare(gradient, unrolled[num_free])
      where = rule, num_free, last, beta, step, stop_norm
      rows.append((seed, *where, *to_exact, *to_unrolled))
  return pd.DataFrame(rows, columns=['seed', *CELL, *METRICS])


@functools.cache
def load() -> pd.DataFrame:
  """Returns what was measured, perhaps nothing; not to be changed."""
  if not PATH.exists():
    return pd.DataFrame(columns=['seed', *CELL, *METRICS])
  return pd.read_csv(PATH)


@functools.cache
def as_runs() -> pd.DataFrame:
  """Returns it in the form of finished runs: a row per value."""
  table = load().melt(
      ['seed', *CELL], METRICS, var_name='metric', value_name='value'
  )
  cells = table[list(CELL)].itertuples(index=False)
  names = ['-'.join(map(str, cell)) for cell in cells]
  return data.as_runs(table, pd.Series(names, table.index), split='train')


def main() -> None:
  """Measures both treatments of norms."""
  table = pd.concat([measure(False), measure(True)])
  text = table.to_csv(index=False, float_format='%.4g')
  # Without the time of day, equal tables give equal bytes.
  files.write_atomically(PATH, gzip.compress(text.encode(), mtime=0))
  shown = table[(table['step'] == STEPS[-1]) & ~table['stop_norm']]
  keys = ['rule', 'num_free', 'num_last', 'beta']
  print(shown.groupby(keys, dropna=False)[list(METRICS)].mean().to_string())


if __name__ == '__main__':
  script.run(main)

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
import itertools
import pathlib
from typing import Any, cast, NamedTuple

import jax
from jax import flatten_util
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd

from modular_hyperteacher.cli import script
from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.library import measured
from modular_hyperteacher.learning import estimates
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.studies.outer_gradients import quadratic
from modular_hyperteacher.studies.outer_gradients import rules
from modular_hyperteacher.studies.outer_gradients import surrogates
from modular_hyperteacher.studies.outer_gradients.configs import blocks

EXPERIMENT = 'cr_fidelity'  # For claims; there is no config of this name.
CELL = ('rule', 'num_free', 'num_last', 'beta', 'step', 'stop_norm')
METRICS = ('error', 'cosine', 'error_unrolled', 'cosine_unrolled')
# A row per seed, point and estimate; for claims, one per value.
MEASURED = measured.Table(
    pathlib.Path(__file__).parent / 'data' / 'fidelity.csv.gz',
    CELL,
    {'split': 'train'},
    lambda table: table.melt(
        ['seed', *CELL], METRICS, var_name='metric', value_name='value'
    ),
)
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

_IMPLICIT = tuple(
    rules.Implicit(gradient=name, num_iterations=number, **_OUTER)
    for name, number in (
        ('t1_t2', None),
        ('implicit_cg', 5),
        ('implicit_neumann', 10),
    )
)
_EXACT = rules.Implicit(
    gradient='implicit_cg', num_iterations=_ITERATIONS, **_OUTER
)

# (meta_params, task, key, fast parameters after the free phase, beta, T) ->
# scalar
_Estimate = Callable[..., jax.Array]


class _Point(NamedTuple):
  """Where gradients are measured."""

  meta_params: Any
  drawn: Any  # Tasks, [tasks, ...].
  keys: jax.Array  # [tasks]


def _mean_gradient(estimate: _Estimate) -> Callable[..., jax.Array]:
  """Returns (point, free [tasks, ...], beta, T) -> the mean's gradient, [P].

  A rule with a free phase of its own takes the point alone.
  """

  @jax.jit
  def gradient(
      point: _Point, free: Any = None, beta: Any = 0.0, num_last: Any = 0
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
    exact: the gradient after a converged free phase of its own.
  """

  def __init__(self, built: bilevel.BilevelExperiment) -> None:
    """Takes the task and the model; the inner loop is gradient descent."""
    problems = {
        n: estimates.Problem(
            built.task,
            built.model,
            inner_loop.InnerConfig(
                num_steps=n, learning_rate=_RATE, solver='sgd'
            ),
        )
        for n in (*FREE, _CONVERGED)
    }
    self.free = {n: _adapt(problems[n]) for n in FREE}
    self.rules = {
        (n, rule): _by_rule(problems[n], rule)
        for n in FREE
        for rule in (*_rules(n), *_IMPLICIT)
    }
    self.contrasts = {  # All problems have the same losses.
        name: _by_contrast(problems[FREE[0]], contrast)
        for name, contrast in surrogates.CONTRASTS.items()
    }
    self.exact = _by_rule(problems[_CONVERGED], _EXACT)


def _adapt(problem: estimates.Problem) -> Callable[[_Point], Any]:
  return jax.jit(
      lambda point: jax.vmap(
          lambda *x: problem.adapt(point.meta_params, None, *x)
      )(point.drawn, point.keys)
  )


def _by_rule(
    problem: estimates.Problem, rule: outer_loop.OuterConfig
) -> Callable[..., jax.Array]:
  made = rule.make_estimate(problem)

  def estimate(
      meta_params: Any, task: Any, key: jax.Array, *_: Any
  ) -> jax.Array:
    return made(meta_params, None, task, key)[0]

  return _mean_gradient(estimate)


def _by_contrast(
    problem: estimates.Problem, contrast: surrogates.Contrast
) -> Callable[..., jax.Array]:
  return _mean_gradient(
      lambda meta_params, task, _, free, beta, num_last: surrogates.contrastive(
          surrogates.bind(problem, task),
          meta_params,
          free,
          contrast,
          beta,
          optax.sgd(_RATE),
          num_last,
          blocks.MAX_QUERY_LOSS,
      )
  )


def _rules(num_free: int) -> list[outer_loop.OuterConfig]:
  """Returns the unrolled rule, then first-order and truncated ones."""
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

  def by_rule(
      rule: outer_loop.OuterConfig, num_free: int, last: int
  ) -> tuple[str, int, int, float, np.ndarray]:
    gradient = estimators.rules[num_free, rule](point)
    return rule.gradient, num_free, last, np.nan, np.asarray(gradient)

  names = _STOPPED if stop_norm else _CONTRASTS
  for num_free in FREE:
    for rule in _rules(num_free)[: 1 if stop_norm else None]:
      yield by_rule(rule, num_free, getattr(rule, 'num_differentiated', 0))
    free = estimators.free[num_free](point)
    for name, last in itertools.product(names, LAST):
      if stop_norm and last != _STOPPED_LAST:
        continue
      for beta in BETAS:
        gradient = estimators.contrasts[name](point, free, beta, last)
        yield name, num_free, last, beta, np.asarray(gradient)
    if not stop_norm and num_free < FREE[-1]:
      for rule in _IMPLICIT:
        yield by_rule(rule, num_free, rule.num_iterations or 0)


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
    exact = np.asarray(estimators.exact(point))
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


def main() -> None:
  """Measures both treatments of norms."""
  table = pd.concat([measure(False), measure(True)])
  MEASURED.write(table, '%.4g')
  shown = table[(table['step'] == STEPS[-1]) & ~table['stop_norm']]
  keys = ['rule', 'num_free', 'num_last', 'beta']
  print(shown.groupby(keys, dropna=False)[list(METRICS)].mean().to_string())


if __name__ == '__main__':
  script.run(main)

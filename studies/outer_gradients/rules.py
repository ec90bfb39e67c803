"""The rules for outer gradients that configs name: `model.outer.gradient`.

Each is a class of settings of the outer loop. A rule checks that the inner loop
suits it: the theorem behind the contrastive rule needs the stationary point of
one loss, the same in all phases and derivatives.
"""

from collections.abc import Callable
import dataclasses
import functools
from typing import Annotated, Any

import jax
from jax import lax

from modular_hyperteacher import errors
from modular_hyperteacher.learning import estimates
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.models import base as models
from modular_hyperteacher.studies.outer_gradients import surrogates
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.untrusted import rules


def _check(
    gradient: str, problem: estimates.Problem, solver: str | None = None
) -> None:
  """Raises UserError if a rule cannot use this inner loop or model."""
  inner, model = problem.inner, problem.model
  needed: dict[str, Any] = {
      'batch_size': None,
      'fresh_support': False,
      'second_order': True,
      'first_order': False,
  }
  if solver:
    needed['solver'] = solver
  for field, value in needed.items():
    errors.require(
        getattr(inner, field) == value,
        f'model.inner.{field}',
        getattr(inner, field),
        f'with model.outer.gradient {gradient} it must be {value}',
    )
  errors.require(
      model.infer is None and model.gate is None,
      'model.outer.gradient',
      gradient,
      'models that predict their fast parameters, or gate them, need unrolled',
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FirstOrder(outer_loop.OuterConfig):
  """Inner updates are constants, but for the initial fast parameters."""

  def make_estimate(self, problem: estimates.Problem) -> estimates.Estimate:
    """Returns unrolling with `InnerConfig.first_order`."""
    _check(self.gradient, problem)
    inner = dataclasses.replace(
        problem.inner, second_order=False, first_order=True
    )
    return estimates.unrolled(problem._replace(inner=inner))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Truncated(outer_loop.OuterConfig):
  """Differentiates through the last inner steps; earlier ones are constants.

  Attributes:
    num_differentiated: T, inner steps.
  """

  num_differentiated: rules.Count

  def make_estimate(self, problem: estimates.Problem) -> estimates.Estimate:
    """Returns the query loss after both parts of the inner loop."""
    _check(self.gradient, problem)
    num_steps = problem.inner.num_steps
    self.require(
        self.num_differentiated <= num_steps,
        'num_differentiated',
        f'it must be at most model.inner.num_steps, {num_steps}',
    )
    optimizer = inner_loop.make_optimizer(problem.inner)

    def estimate(
        meta_params: models.MetaParams,
        task_params: tasks.TaskParams,
        task: tasks.Task,
        key: jax.Array,
    ) -> tuple[jax.Array, Any]:
      del task_params
      losses_at = surrogates.bind(problem, task)
      start, _ = problem.start(meta_params, task, key)
      fixed, fixed_start = lax.stop_gradient((meta_params, start))
      before, state = lax.stop_gradient(
          surrogates.descend(
              losses_at(fixed).inner,
              optimizer,
              (fixed_start, optimizer.init(fixed_start)),
              num_steps - self.num_differentiated,
          )
      )
      # Where the first part ends moves as its start does, as in first order.
      before = jax.tree.map(
          lambda x, y, z: z + (x - y), start, fixed_start, before
      )
      fast_params, _ = surrogates.descend(
          losses_at(meta_params).inner,
          optimizer,
          (before, state),
          self.num_differentiated,
      )
      return problem.score(meta_params, fast_params, task.query)

    return estimate


def _after_free_phase(
    gradient: str,
    problem: estimates.Problem,
    surrogate: Callable[..., jax.Array],
) -> estimates.Estimate:
  """Returns `surrogate(losses_at, meta_params, adapted parameters)`.

  The adapted parameters are constants, and metrics are of them.
  """
  _check(gradient, problem, solver='sgd')

  def estimate(
      meta_params: models.MetaParams,
      task_params: tasks.TaskParams,
      task: tasks.Task,
      key: jax.Array,
  ) -> tuple[jax.Array, Any]:
    fixed = lax.stop_gradient(meta_params)
    free = problem.adapt(fixed, task_params, task, key)
    _, metrics = problem.score(fixed, free, task.query)
    losses_at = surrogates.bind(problem, task)
    return surrogate(losses_at, meta_params, free), metrics

  return estimate


@dataclasses.dataclass(frozen=True, kw_only=True)
class Implicit(outer_loop.OuterConfig):
  """Implicit differentiation: 'implicit_cg', 'implicit_neumann', 't1_t2'.

  Attributes:
    num_iterations: the number of iterations of conjugate gradients, or terms of
      the Neumann series, whose rate is the inner loop's; None for T1-T2.
  """

  num_iterations: rules.Count | None = None

  def __post_init__(self) -> None:
    super().__post_init__()
    none = self.gradient == 't1_t2'
    self.require(
        (self.num_iterations is None) == none,
        'num_iterations',
        f'with gradient {self.gradient} it must be'
        f' {"None" if none else "a number"}',
    )

  def make_estimate(self, problem: estimates.Problem) -> estimates.Estimate:
    """Returns the surrogate of the implicit function theorem."""
    number = self.num_iterations or 0
    solve = {
        'implicit_cg': surrogates.conjugate_gradients(number),
        'implicit_neumann': surrogates.neumann(
            number, problem.inner.learning_rate
        ),
        't1_t2': surrogates.neumann(0, 1.0),  # v = grad l_out.
    }[self.gradient]
    surrogate = functools.partial(surrogates.implicit, solve=solve)
    return _after_free_phase(self.gradient, problem, surrogate)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Contrastive(outer_loop.OuterConfig):
  """The contrastive rule; `gradient` is a name in `surrogates.CONTRASTS`.

  Attributes:
    beta: b, the strength of the nudge.
    num_nudged_steps: T, steps of each nudged phase.
    max_query_loss: nats above which the query loss no longer nudges; None for
      never. A negative phase descends minus the query loss, which is unbounded.
  """

  beta: rules.Positive
  num_nudged_steps: rules.Count
  max_query_loss: (
      Annotated[float, rules.positive(', or None for no bound')] | None
  ) = None

  def __post_init__(self) -> None:
    super().__post_init__()
    contrast = surrogates.CONTRASTS[self.gradient]
    self.require(
        min(contrast.strengths) >= 0 or self.max_query_loss is not None,
        'max_query_loss',
        f'with gradient {self.gradient} it must be a number, as the negative'
        ' phase descends an unbounded loss',
    )

  def make_estimate(self, problem: estimates.Problem) -> estimates.Estimate:
    """Returns the surrogate of the rule's phases."""
    surrogate = functools.partial(
        surrogates.contrastive,
        contrast=surrogates.CONTRASTS[self.gradient],
        beta=self.beta,
        optimizer=inner_loop.make_optimizer(problem.inner),
        num_steps=self.num_nudged_steps,
        max_outer_loss=self.max_query_loss,
    )
    return _after_free_phase(self.gradient, problem, surrogate)

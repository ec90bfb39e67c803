"""The smallest problems that exercise everything; shared by tests."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import randomness
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.learning import evaluation
from modular_hyperteacher.learning import inner_loop
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.models import anil
from modular_hyperteacher.models import linear_hypernetwork
from modular_hyperteacher.models import maml
from modular_hyperteacher.models import nonlinear_hypernetwork
from modular_hyperteacher.studies.amortised import amortised
from modular_hyperteacher.studies.sparse_maml import sparse_maml
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import hyperteacher
from modular_hyperteacher.tasks import objectives

_SIZES = {'input_dim': 3, 'output_dim': 4, 'num_hidden': 2, 'hidden_dim': 4}
_ENCODER = {
    'encoder_hidden_dim': 5,
    'encoder_num_hidden': 2,
    'encoder_num_queries': 2,
}
MODELS = {
    'anil': lambda: anil.make(**_SIZES),
    'maml': lambda: maml.make(**_SIZES),
    'sparse_maml': lambda: sparse_maml.make(gates='rates', **_SIZES),
    'linear_hypernetwork': lambda: linear_hypernetwork.make(
        num_modules=5, **_SIZES
    ),
    'nonlinear_hypernetwork': lambda: nonlinear_hypernetwork.make(
        num_modules=5,
        generator_num_hidden=2,
        generator_hidden_dim=3,
        **_SIZES,
    ),
    'amortised_linear_hypernetwork': lambda: amortised.make_linear(
        num_modules=5, **_SIZES, **_ENCODER
    ),
    'amortised_nonlinear_hypernetwork': lambda: amortised.make_nonlinear(
        num_modules=5,
        generator_num_hidden=2,
        generator_hidden_dim=3,
        **_SIZES,
        **_ENCODER,
    ),
}


def task(**overrides: Any) -> tasks.TaskDistribution:
  """Returns a hyperteacher with three modules and one generated layer."""
  fields: dict[str, Any] = dict(
      num_modules=3,
      max_active=2,
      task_support='random',
      fraction_ood=0.34,
      input_dim=3,
      output_dim=4,
      teacher_hidden_dim=4,
      teacher_num_hidden=2,
      num_support=6,
      num_query=5,
      temperature=0.5,
      num_standardisation=20,
  )
  return hyperteacher.make(**(fields | overrides))


def learner(
    world: tasks.TaskDistribution,
    model: str = 'maml',
    *,
    objective: tasks.Objective = objectives.SOFT_LABELS,
    inner: Mapping[str, Any] | None = None,
    **outer: Any,
) -> outer_loop.Learner:
  """Returns a learner with two inner steps and eight tasks per meta-batch."""
  inner_fields: dict[str, Any] = dict(
      num_steps=2, learning_rate=0.05, weight_decay=1e-4, eps_root=1e-7
  )
  outer_fields: dict[str, Any] = dict(
      learning_rate=1e-2,
      weight_decay=1e-2,
      clip_norm=1.0,
      max_consecutive_skips=1,
      meta_batch_size=8,
  )
  return outer_loop.make_learner(
      dataclasses.replace(world, objective=objective),
      MODELS[model](),
      inner_loop.InnerConfig(**(inner_fields | dict(inner or {}))),
      outer_loop.OuterConfig(**(outer_fields | outer)),
  )


def make_seed_tasks(
    task_distribution: tasks.TaskDistribution,
    seeds: Sequence[int],
    num_tasks: int = 8,
) -> tuple[list[jax.Array], list[programs.SeedTasks]]:
  """Returns the root keys and tasks of these seeds."""
  roots = [randomness.root_key(seed) for seed in seeds]
  draw = evaluation.make_draw_tasks(task_distribution, num_tasks)
  return roots, [draw(root) for root in roots]


def make_programs(
    task_distribution: tasks.TaskDistribution,
    algorithm: outer_loop.Learner,
    seeds: Sequence[int],
    num_tasks: int = 8,
    optimise: bool = True,
) -> programs.Programs:
  """Returns the programs of these seeds."""
  roots, seed_tasks = make_seed_tasks(task_distribution, seeds, num_tasks)
  system = bilevel.make_system(
      task_distribution,
      MODELS['maml'](),  # Counted, and nothing else.
      algorithm,
      num_evaluation_tasks=num_tasks,
      task_chunk_size=None,
  )
  return programs.Programs(system, roots, seed_tasks, optimise)


def on_devices(
    function: Callable[..., Any], num_devices: int
) -> Callable[..., Any]:
  """Maps a function of unreplicated arguments over some host devices."""

  def call(*args: Any) -> Any:
    mapped = jax.pmap(
        lambda _, *rest: function(*rest),
        axis_name=outer_loop.DEVICE_AXIS,
        in_axes=(0,) + (None,) * len(args),
        devices=jax.local_devices()[:num_devices],
    )
    results = mapped(jnp.zeros(num_devices), *args)
    return jax.tree.map(lambda x: np.asarray(x)[0], results)

  return call

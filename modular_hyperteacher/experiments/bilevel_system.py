"""The bilevel system: models that adapt to tasks in an inner loop."""

from collections.abc import Sequence

import jax

from modular_hyperteacher.analysis import base as analyses
from modular_hyperteacher.learning import evaluation
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks


def make_system(
    task: tasks.TaskDistribution,
    model: models.MetaModel,
    learner: outer_loop.Learner,
    *,
    num_evaluation_tasks: int,
    task_chunk_size: int | None,
    analysis: analyses.Analysis | None = None,
) -> programs.System:
  """Returns the system of one model on one task distribution.

  Args:
    task: the task distribution.
    model: the model to train.
    learner: the learning algorithm.
    num_evaluation_tasks: per split.
    task_chunk_size: tasks computed together on a device; None for all.
    analysis: analysis of adapted parameters after the last step.
  """

  def make_analyse(
      seed_tasks: Sequence[programs.SeedTasks], roots: Sequence[jax.Array]
  ) -> programs.Analyse | None:
    if analysis is None:
      return None
    return analyses.over_seeds(
        analysis, task.evaluation_splits, seed_tasks, roots
    )

  return programs.System(
      evaluation_splits=task.evaluation_splits,
      num_params=models.count_params(model),
      draw_tasks=evaluation.make_draw_tasks(task, num_evaluation_tasks),
      num_combinations=task.num_combinations,
      fixed_counts=task.fixed_counts,
      init=learner.init,
      step=learner.step,
      evaluate=evaluation.make_evaluate(
          task, learner, task_chunk_size, analysis.splits if analysis else ()
      ),
      make_analyse=make_analyse,
  )

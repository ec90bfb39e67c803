"""The theory's teacher and student, with weighted families, over training.

The task is `teacher_student`, but a support of `supports` says how often each
family is drawn. Each family also has an evaluation split of its own, with
continuous latents like all OOD splits: 'ood_family_01' combines modules 0 and
1. The student is `modular_student` under the name `tracked_student`. Alignment
and decoding are measured at every evaluation.
"""

import dataclasses
from typing import Any

import jax
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher.analysis import alignment
from modular_hyperteacher.analysis import base as analyses
from modular_hyperteacher.analysis import ridge
from modular_hyperteacher.experiments import components
from modular_hyperteacher.models import base as models
from modular_hyperteacher.studies.learning_dynamics import supports
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import teacher_student
from modular_hyperteacher.tasks.supports import combinations


def make(
    *,
    num_modules: int,
    task_support: str,
    latent_type: str,
    sampler: str,
    input_dim: int,
    output_dim: int,
    teacher_hidden_dim: int,
    num_support: int,
    num_query: int,
    num_evaluation_query: int,
) -> tasks.TaskDistribution:
  """Returns the task distribution of weighted families.

  Splits: 'train', 'valid', 'test' and 'ood', as in `teacher_student.make`; and
  one per family, see `supports.family_split`. The support is a name in
  `supports.NAMES`; all other fields are those of `teacher_student.make`.

  Raises:
    UserError: for an impossible value; names the field.
  """
  fields: dict[str, Any] = dict(locals())
  errors.require_choice('task.task_support', task_support, supports.NAMES)
  # Any name does: the support is replaced below.
  plain = teacher_student.make(**{**fields, 'task_support': 'all'})
  train = supports.masks(task_support)
  families = np.unique(train, axis=0)
  all_masks = combinations.masks_up_to(num_modules, num_modules)
  masks: dict[str, np.ndarray] = {'train': train, 'valid': train, 'test': train}
  masks['ood'] = combinations.without(all_masks, families)
  masks |= {supports.family_split(family): family[None] for family in families}

  def sample_latent(params: Any, key: jax.Array, split: str) -> jax.Array:
    del params
    return teacher_student.draw_latent(
        key,
        masks[split],
        discrete=latent_type == 'discrete' and masks[split] is train,
        sampler=sampler,
    )

  return dataclasses.replace(
      plain,
      evaluation_splits=tuple(split for split in masks if split != 'train'),
      sample_latent=sample_latent,
      num_combinations=lambda params, split: len(
          np.unique(masks[split], axis=0)
      ),
  )


def _make_analysis(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> analyses.Analysis:
  """Returns the analysis of alignment and decoding, at every evaluation.

  To the metrics of `alignment` it adds 'decoding_r2_m{m}', the R2 of module m
  by the same regression of latents, fitted and scored on the same tasks. It
  leaves out the splits of single families, whose latents do not determine the
  map to the student's.
  """
  made = alignment.make_analysis(task, model)

  def measure(adapted: analyses.Adapted) -> analyses.Metrics:
    measured = dict(made.measure(adapted))
    for split, latents in adapted.latents.items():
      scores = _decode(adapted.fast_params[split], latents[:, 0])
      by_module = {f'decoding_r2_m{m}': float(r) for m, r in enumerate(scores)}
      measured[split] = {**measured[split], **by_module}
    return measured

  return analyses.Analysis(('test', 'ood'), measure, always=True)


@jax.jit
def _decode(student_latents: jax.Array, latents: jax.Array) -> jax.Array:
  """Returns the R2 of each module, [M]."""
  regression = alignment.fit_latents(student_latents, latents)
  return ridge.r2(student_latents @ regression.T, latents)


TASK = components.TaskEntry(make, (_make_analysis,), cpu_chunk_size=2)

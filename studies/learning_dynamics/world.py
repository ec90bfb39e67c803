"""The theory's teacher and student, with weighted families, over training.

The task is `teacher_student`, but a support of `supports` says how often each
family is drawn. Each family also has an evaluation split of its own, with
continuous latents like all OOD splits: 'ood_family_01' combines modules 0 and
1. The student is `modular_student` under the name `tracked_student`. Alignment
and decoding are measured at every evaluation, inside the compiled program:
analyses on the host run at few of them.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher.analysis import alignment
from modular_hyperteacher.analysis import base as analyses
from modular_hyperteacher.analysis import ridge
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import components
from modular_hyperteacher.experiments import settings
from modular_hyperteacher.learning import outer_loop
from modular_hyperteacher.learning import programs
from modular_hyperteacher.models import base as models
from modular_hyperteacher.studies.learning_dynamics import supports
from modular_hyperteacher.tasks import base as tasks
from modular_hyperteacher.tasks import teacher_student
from modular_hyperteacher.tasks.supports import combinations

# Splits whose adapted parameters are measured: training families, and new ones.
_MEASURED = ('test', 'ood')


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
  seen = (all_masks[:, None] == families[None]).all(-1).any(-1)
  masks: dict[str, np.ndarray] = {'train': train, 'valid': train, 'test': train}
  masks['ood'] = all_masks[~seen]
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


def _make_alignment(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> analyses.Analysis:
  """Returns the analysis of alignment, without the splits of single families.

  The latents of one family do not determine the map to the student's.
  """
  made = alignment.make_analysis(task, model)
  return made._replace(splits=_MEASURED)


TASK = components.TaskEntry(make, (_make_alignment,), cpu_chunk_size=2)


blocks = bilevel.blocks


def build(
    config: Mapping[str, Any],
    training: settings.TrainingConfig,
    execution: settings.ExecutionConfig,
    num_devices: int,
) -> settings.Experiment:
  """Returns the experiment of a config, measured at every evaluation.

  Raises:
    UserError: if the task is not this study's, or as `bilevel.build`.
  """
  name = config['task'].get('name')
  errors.require_choice('task.name', name, ('weighted_families',))
  built = bilevel.build(config, training, execution, num_devices)
  tracked = _track(built.system.evaluate, built.task.evaluation_splits)
  return dataclasses.replace(
      built, system=built.system._replace(evaluate=tracked)
  )


def _track(
    evaluate: programs.Evaluate, splits: tuple[str, ...]
) -> programs.Evaluate:
  """Adds what `measure` returns to the metrics; NaN in the other splits."""
  rows = [splits.index(split) for split in _MEASURED]

  def tracked(
      meta_params: Any, task_params: Any, latents: jax.Array, key: jax.Array
  ) -> tuple[programs.Evaluation, Any]:
    metrics, kept = evaluate(meta_params, task_params, latents, key)
    # [2, tasks, M-hat], of all devices.
    inferred = lax.all_gather(kept, outer_loop.DEVICE_AXIS, axis=1, tiled=True)
    measured = measure(
        task_params.modules,
        meta_params['modules'],
        latents[jnp.array(rows), :, 0],
        inferred,
    )
    missing = jnp.full(len(splits), jnp.nan)
    more = {
        name: missing.at[jnp.array(rows)].set(values)
        for name, values in measured.items()
    }
    return {**metrics, **more}, kept

  return tracked


def measure(
    teacher: jax.Array,
    student: jax.Array,
    latents: jax.Array,
    inferred: jax.Array,
) -> dict[str, jax.Array]:
  """Returns metric -> [2], of training families and of new combinations.

  'alignment' is as in `alignment`. 'decoding_r2_m{m}' is the R2 of module m, by
  the same regression of latents, fitted and scored on the same tasks.

  Args:
    teacher: modules, [M, X, H].
    student: modules, [M-hat, X, H-hat].
    latents: z of each task, [2, tasks, M].
    inferred: zhat of each task, [2, tasks, M-hat].
  """
  decoded = []
  for latent, student_latent in zip(latents, inferred):
    regression = alignment.fit_latents(student_latent, latent)
    joint = alignment.align(teacher, student, regression)['joint_mean']
    scores = ridge.r2(student_latent @ regression.T, latent)
    decoded.append({
        'alignment': joint,
        **{f'decoding_r2_m{m}': score for m, score in enumerate(scores)},
    })
  return jax.tree.map(lambda *pair: jnp.stack(pair), *decoded)

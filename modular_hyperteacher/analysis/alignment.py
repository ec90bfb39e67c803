"""Module alignment: has the student found the teacher's modules?

Source: Section 3.2, Appendix B.3, as computed by the authors' released code.
From pairs of a task's latent z [M] and the student's zhat [M-hat]:

  1. D [M, M-hat], the ridge regression z ~ D zhat without intercept
  2. P = pinv(D) [M-hat, M], which maps z to zhat
  3. the student's modules in the teacher's coordinates,
     aligned_m = sum_j P[j, m] module_j    [X, H-hat]
  4. C[m, k, k'], the cosine, over the inputs, between the weights of the
     teacher's unit k and the student's unit k' in module m

*Joint* alignment is mean_k max_k' mean_m C: one student unit must match a
teacher unit in all modules. *Per-module* alignment is mean_mk max_k' C: the
match may differ between modules. 1 means identified, up to a linear map of
latents. A unit with the opposite sign has a negative cosine.

*Weight* alignment needs no D: it compares the weights that teacher and student
combine for every task, `sum_m z_m module_m`.
"""

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher.analysis import base
from modular_hyperteacher.analysis import identification
from modular_hyperteacher.analysis import ridge
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks

RIDGE = 0.01


def fit_latents(
    student_latents: jax.Array, latents: jax.Array, exact: bool = False
) -> jax.Array:
  """Returns D [M, M-hat] of the ridge regression `latents ~ D zhat`.

  The student's latents zhat are [tasks, M-hat], the teacher's [tasks, M]. Takes
  ten iterations of conjugate gradients, as the released code does, or solves
  the normal equations exactly.
  """
  if exact:
    width = student_latents.shape[1]
    system = student_latents.T @ student_latents + RIDGE * jnp.eye(width)
    return jnp.linalg.solve(system, student_latents.T @ latents).T
  return ridge.fit_by_conjugate_gradients(student_latents, latents, RIDGE).T


def align(
    teacher_modules: jax.Array,  # [M, X, H]
    student_modules: jax.Array,  # [M-hat, X, H-hat]
    regression: jax.Array,  # D, as `fit_latents` returns it, [M, M-hat]
) -> dict[str, jax.Array]:
  """Returns a student's alignment, given a linear map between latents.

  The keys are 'joint_mean', 'joint_max', 'joint_min' (over the teacher's units)
  and 'per_module_mean', ... (over units and modules). Values are at most 1.
  """
  aligned = jnp.einsum(
      'jm,jxk->mxk', jnp.linalg.pinv(regression), student_modules
  )
  cosines = jnp.einsum(
      'mxk,mxl->mkl', _unit_columns(teacher_modules), _unit_columns(aligned)
  )
  best = {'joint': cosines.mean(0).max(-1), 'per_module': cosines.max(-1)}
  return {
      f'{name}_{statistic}': getattr(cosine, statistic)()
      for name, cosine in best.items()
      for statistic in ('mean', 'max', 'min')
  }


def align_weights(
    teacher_modules: jax.Array,  # [M, X, H]
    student_modules: jax.Array,  # [M-hat, X, H-hat]
    latents: jax.Array,  # z of each task, [tasks, M]
    student_latents: jax.Array,  # zhat of each task, [tasks, M-hat]
) -> tuple[jax.Array, jax.Array]:
  """Returns how well the combined weights of each task are aligned.

  Returns:
    [], the mean cosine of each teacher's unit and its best student unit, one
    for all tasks; and [], that mean if each task has best units of its own.
    NaN if the weights of a unit are all zero in a task.
  """
  cosines = jnp.einsum(
      'txk,txl->tkl',
      _unit_columns(jnp.einsum('tm,mxk->txk', latents, teacher_modules)),
      _unit_columns(
          jnp.einsum('tm,mxk->txk', student_latents, student_modules)
      ),
  )
  return cosines.mean(0).max(-1).mean(), cosines.max(-1).mean()


def _unit_columns(weights: jax.Array) -> jax.Array:
  return weights / jnp.linalg.norm(weights, axis=1, keepdims=True)


def make_analysis(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> base.Analysis:
  """Returns the analysis of a trained student, for every split.

  Fitted on the tasks of each split: 'alignment' (joint, the headline), its
  maximum and minimum over units, 'alignment_per_module', 'alignment_exact'
  (joint, exact ridge) and 'latent_r2' (mean over modules). `align_weights`
  returns 'alignment_weights' and 'alignment_weights_per_task'.
  'alignment_fit_train' is the joint alignment fitted on tasks like those of
  training, the same in every split. 'identification_*' measures how far the
  modules are from a linear map of the teacher's (see `identification`).
  '..._residual' and '..._flipped' take the pseudoinverse of the exact
  regression as the map between latents. '..._residual_direct' fits that map
  directly, and weights units by the square of their readout. All are NaN if the
  modules, the split's latents or their regression are not finite.

  Raises:
    UserError: if the model has no modules, or fewer hidden units than the
      teacher.
  """
  key = jax.random.key(0)
  student = jax.eval_shape(model.init, key)
  if not isinstance(student, dict) or 'modules' not in student:
    raise errors.UserError(
        "model.name must be 'modular_student' with task.name"
        " 'teacher_student', whose analysis compares modules; this model has"
        ' none.'
    )
  width = student['modules'].shape[-1]
  least = jax.eval_shape(task.init, key).modules.shape[-1]
  rule = f'it must be at least task.teacher_hidden_dim, {least}'
  errors.require(width >= least, 'model.hidden_dim', width, rule)
  return base.Analysis(task.evaluation_splits, _measure)


def _measure(adapted: base.Adapted) -> base.Metrics:
  teacher = adapted.task_params.modules
  modules = jnp.asarray(adapted.meta_params['modules'])
  fast_params, latents = adapted.fast_params['test'], adapted.latents['test']
  on_train, _ = _split_metrics(teacher, modules, fast_params, latents[:, 0])
  readout_power = (np.asarray(adapted.task_params.readout) ** 2).sum(-1)
  metrics = {}
  for split, latents in adapted.latents.items():
    student, student_latents = modules, adapted.fast_params[split]
    by_name, regression = _split_metrics(
        teacher, student, student_latents, latents[:, 0]
    )
    is_lost = not base.is_finite(student, student_latents, regression)
    if is_lost:
      # It must not cost other seeds: of NaN, NumPy and SciPy would raise. Ones
      # stand in, as only the names of their metrics count.
      student, regression = jnp.ones_like(student), jnp.ones_like(regression)
      student_latents = np.ones_like(student_latents)
    both = np.asarray(teacher), np.asarray(student)
    by_regression = identification.identify(
        *both, np.linalg.pinv(np.asarray(regression))
    )
    direct = identification.identify(
        *both,
        identification.fit_latent_map(latents[:, 0], student_latents),
        weights=readout_power,
    )
    values = {
        **jax.tree.map(float, by_name),
        'alignment_fit_train': float(on_train['alignment']),
        'identification_residual': by_regression.residual,
        'identification_residual_direct': direct.residual,
        'identification_flipped': by_regression.fraction_flipped,
    }
    metrics[split] = dict.fromkeys(values, np.nan) if is_lost else values
  return metrics


@jax.jit
def _split_metrics(
    teacher: jax.Array,
    student: jax.Array,
    student_latents: jax.Array,
    latents: jax.Array,
) -> tuple[dict[str, jax.Array], jax.Array]:
  """Returns metrics of one split, and D of the exact regression."""
  regression = fit_latents(student_latents, latents)
  exact = fit_latents(student_latents, latents, exact=True)
  alignment = align(teacher, student, regression)
  fitted = ridge.r2(student_latents @ regression.T, latents)
  weights = align_weights(teacher, student, latents, student_latents)
  return {
      'alignment': alignment['joint_mean'],
      'alignment_max': alignment['joint_max'],
      'alignment_min': alignment['joint_min'],
      'alignment_per_module': alignment['per_module_mean'],
      'alignment_exact': align(teacher, student, exact)['joint_mean'],
      'alignment_weights': weights[0],
      'alignment_weights_per_task': weights[1],
      'latent_r2': jnp.nanmean(fitted),
  }, exact

"""Linear decoding: do adapted parameters reveal which modules a task combines?

Source: Section 4.1, Figures 3C and 3D, as computed by the authors' released
code. For every layer l and module m, a ridge regression with a penalised
intercept predicts the task's latent z^l_m from all its adapted fast parameters.
It is fitted on test tasks, which combine modules as in training, and scored on
OOD tasks by R^2 (at most 1).

Two solutions are reported: 'r2', after ten iterations of conjugate gradients as
in the released code, and the exact 'r2_exact'. As in the released code, the fit
for 'r2' has no intercept for tasks with a feature that is exactly 0, although
predictions add it for all tasks.

With non-compositional support every OOD task contains the held-out module, so
its target is constant and R^2 is undefined. Means are over defined targets.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher.analysis import base
from modular_hyperteacher.analysis import ridge
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks

RIDGE = 1.0


def make_analysis(
    task: tasks.TaskDistribution, model: models.MetaModel
) -> base.Analysis:
  """Returns the analysis, whose metrics belong to the split 'ood'.

  'r2' and 'r2_exact' are means over layers and modules; 'r2_l0_m3' is the R^2
  of layer 0 and module 3, and so on. NaN where R^2 is undefined.
  """
  del task, model
  return base.Analysis(('test', 'ood'), _measure)


def flatten(fast_params: Any) -> np.ndarray:
  """Returns all fast parameters of each task as features, [tasks, F].

  Leaves are [tasks, ...], in the alphabetical order of their names. The
  authors' order is input, hidden and output embeddings, then the bias; it
  changes the released decoder, which stops early, by rounding only.
  """
  leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(fast_params)]
  return np.concatenate([x.reshape(len(x), -1) for x in leaves], axis=1)


@jax.jit
def fit(features: jax.Array, latents: jax.Array) -> jax.Array:
  """Returns the weights [F + 1, L, M] of the released solution.

  Features are [tasks, F], latents [tasks, L, M]; the intercept's weights are
  the last.
  """
  no_zeros = jnp.all(features != 0, axis=1, keepdims=True)
  extended = jnp.concatenate([features, no_zeros.astype(features.dtype)], 1)
  targets = latents.reshape(len(latents), -1)
  weights = ridge.fit_by_conjugate_gradients(extended, targets, RIDGE)
  return weights.reshape(-1, *latents.shape[1:])


@jax.jit
def predict(weights: jax.Array, features: jax.Array) -> jax.Array:
  """Returns latents [tasks, L, M] decoded from features [tasks, F]."""
  return jnp.einsum('nf,flm->nlm', features, weights[:-1]) + weights[-1:]


def predict_exactly(
    features: np.ndarray,  # [tasks, F]
    latents: np.ndarray,  # [tasks, L, M]
    new_features: np.ndarray,  # [new, F]
) -> np.ndarray:
  """Returns latents decoded by the exact ridge regression, [new, L, M]."""
  targets = latents.reshape(len(latents), -1)
  decoded = ridge.predict_exactly(
      _append_ones(features), targets, _append_ones(new_features), RIDGE
  )
  return decoded.reshape(-1, *latents.shape[1:])


def score(
    decoded: np.ndarray, latents: np.ndarray, name: str
) -> Mapping[str, float]:
  """Returns the mean R^2 over defined targets, and that of each target.

  The mean has the given name, the others are '{name}_l{layer}_m{module}'.
  Latents are [tasks, L, M].
  """
  num_tasks, num_layers, num_modules = latents.shape
  flat = ridge.r2(
      decoded.reshape(num_tasks, -1), latents.reshape(num_tasks, -1)
  )
  by_target = np.asarray(flat).reshape(num_layers, num_modules)
  defined = by_target[~np.isnan(by_target)]
  mean = float(defined.mean()) if defined.size else float('nan')
  return {name: mean} | {
      f'{name}_l{layer}_m{module}': float(value)
      for (layer, module), value in np.ndenumerate(by_target)
  }


def _measure(adapted: base.Adapted) -> base.Metrics:
  known, new = (flatten(adapted.fast_params[s]) for s in ('test', 'ood'))
  latents, new_latents = adapted.latents['test'], adapted.latents['ood']
  released = np.asarray(predict(fit(known, latents), new))
  exact = predict_exactly(known, latents, new)
  return {
      'ood': {
          **score(released, new_latents, 'r2'),
          **score(exact, new_latents, 'r2_exact'),
      }
  }


def _append_ones(features: np.ndarray) -> np.ndarray:
  return np.concatenate([features, np.ones((len(features), 1))], axis=1)

"""Linear decoding from layers: do hidden units reveal which modules combine?

Source: Redhardt et al., "Scaling can lead to compositional generalization"
(2025), and its released code. For models without fast parameters. A ridge
regression per module predicts the latent from every layer, before its
nonlinearity, and from the code that the model is given. It is fitted on half of
the test tasks; R2 is that on the other half and on OOD tasks. A task is one
vector, of its last query example.

Metrics of both splits:

  decoding_r2_code, decoding_r2_layer_0, ...  as released, see `decoding`
  decoding_r2_exact_...                       of the exact regression
  decoding_r2                                 of the hidden layer that is best
                                              on test tasks
  decoding_r2_last                            of the last hidden layer
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from modular_hyperteacher.analysis import base
from modular_hyperteacher.analysis import decoding
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base as tasks

_NAME = 'decoding_r2'
# (meta_params, inputs [N, X]) -> every layer's output before its nonlinearity,
# [N, H], the network's last.
Activations = Callable[[models.MetaParams, models.Array], list[models.Array]]


def make_analysis(
    task: tasks.TaskDistribution, activations: Activations
) -> base.Analysis:
  """Returns the analysis of a model, given what its layers compute."""

  @jax.jit
  def features(
      meta_params: Any, task_params: Any, latents: jax.Array, key: jax.Array
  ) -> dict[str, jax.Array]:
    def of_task(latent: jax.Array, task_key: jax.Array) -> dict[str, jax.Array]:
      _, query = task.sample_examples(task_params, task_key, latent, 'test')
      # A transformer reads the last example after all others.
      inputs = tasks.dense(query.inputs)
      layers = activations(meta_params, inputs)
      named = {f'layer_{i}': layer[-1] for i, layer in enumerate(layers)}
      code = {'code': inputs[-1, : task.code_dim]} if task.code_dim else {}
      return {**code, **named}

    return jax.vmap(of_task)(latents, jax.random.split(key, len(latents)))

  def measure(adapted: base.Adapted) -> base.Metrics:
    if len(adapted.latents['test']) < 2:  # Too few to fit and to score.
      return {'test': {}, 'ood': {}}
    decoded = {}
    for key, (split, latents) in zip(
        jax.random.split(adapted.key, len(adapted.latents)),
        adapted.latents.items(),
    ):
      drawn = features(adapted.meta_params, adapted.task_params, latents, key)
      decoded[split] = jax.tree.map(np.asarray, drawn), latents
    return score_layers(*decoded['test'], *decoded['ood'])

  return base.Analysis(('test', 'ood'), measure)


def score_layers(
    features: dict[str, np.ndarray],
    latents: np.ndarray,
    new_features: dict[str, np.ndarray],
    new_latents: np.ndarray,
) -> dict[str, dict[str, float]]:
  """Returns the metrics of test tasks and of new, OOD ones.

  Features are 'code' if tasks have one, then layer -> [tasks, F], the readout
  last. Latents are [tasks, L, M].
  """
  half = len(latents) // 2
  metrics: dict[str, dict[str, float]] = {'test': {}, 'ood': {}}
  for name, known in features.items():
    weights = decoding.fit(known[:half], latents[:half])
    for split, of_layer, targets in (
        ('test', known[half:], latents[half:]),
        ('ood', new_features[name], new_latents),
    ):
      released = np.asarray(decoding.predict(weights, of_layer))
      exact = decoding.predict_exactly(known[:half], latents[:half], of_layer)
      for kind, decoded in ((_NAME, released), (f'{_NAME}_exact', exact)):
        metric = f'{kind}_{name}'
        scores = decoding.score(decoded, targets, metric)
        metrics[split][metric] = scores[metric]
  hidden = [name for name in features if name != 'code'][:-1]
  best = max(hidden, key=lambda name: metrics['test'][f'{_NAME}_{name}'])
  for scores in metrics.values():
    scores[_NAME] = scores[f'{_NAME}_{best}']
    scores[f'{_NAME}_last'] = scores[f'{_NAME}_{hidden[-1]}']
  return metrics

"""sRAVEN: symbolic progressive matrices, whose features follow rules.

Source: Section 4.1 and Appendix A of Schug et al., "Attention as a
Hypernetwork" (2025); Table A2 for the sizes. A panel is K integers below F, its
features. Nine panels form a matrix of three rows and three columns. A task is a
multiset of K of the eight rules below, one per feature: in all rows, feature i
follows rule i. The first eight panels are given; the last is to be predicted.

  constant                  c, c, c
  progression by d          s, s + d, s + 2 d     d = +1, +2, -1, -2
  addition, subtraction     u, v, u + v           or u - v
  distribute three          three different values, the same in all rows, in an
                            order that is drawn anew for each row

All sums are modulo F; c, s, u and v are drawn anew for each row. A learner must
also find which features belong together: in each column, the features of all
three panels are shown in an order that is drawn for the instance.

Worked example: K = 2 features below F = 8 follow the rules 'progression by +2'
and 'addition'. With s = 1, 7, 4 and (u, v) = (3, 4), (6, 5), (0, 2):

  (1, 3) (3, 4) (5, 7)
  (7, 6) (1, 5) (3, 3)
  (4, 0) (6, 2) (0, 2)   <- (0, 2) is the answer

If the features of the second column are swapped, its panels are shown as (4,
3), (5, 1) and (2, 6). The learner reads 16 tokens, the features of eight panels
in reading order, each as a one-hot vector of eight numbers, then two tokens of
zeros, where it predicts 0 and 2.
"""

import itertools
import math
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import objectives
from modular_hyperteacher.untrusted import rules

STEPS = (0, 1, 2, -1, -2)  # The first five rules add these; 0 is 'constant'.
RULES = (
    'constant',
    *(f'progression by {step:+d}' for step in STEPS[1:]),
    'addition',
    'subtraction',
    'distribute three',
)
# Splits whose instances show features in the order of their rules, for
# analyses: what they draw from.
UNPERMUTED = {'valid_unpermuted': 'train', 'ood_unpermuted': 'ood'}
_NUM_CONTEXT = 8  # Panels.
_MAX_FEATURES = 6
_MAX_REDRAWS = 100


class Multisets(NamedTuple):
  """Which rules the tasks combine: sorted indices in `RULES`."""

  train: jax.Array  # [C, K]
  ood: jax.Array  # [C', K]


def list_multisets(num_features: int) -> np.ndarray:
  """Returns all multisets of rules, sorted, [C, K]."""
  rules = range(len(RULES))
  return np.array(
      list(itertools.combinations_with_replacement(rules, num_features))
  )


def draw_feature(key: jax.Array, rule: jax.Array, num_values: int) -> jax.Array:
  """Returns one feature of nine panels, [3 rows, 3 columns].

  Args:
    key: the key of all draws.
    rule: index in `RULES`.
    num_values: F.
  """
  keys = jax.random.split(key, 3)
  u, v = jax.random.randint(keys[0], (2, 3, 1), 0, num_values)
  columns = jnp.arange(3)[None]
  progressions = [u + step * columns for step in STEPS]
  sums = [jnp.concatenate([u, v, u + sign * v], 1) for sign in (1, -1)]
  three = jax.random.permutation(keys[1], num_values)[:3]
  shuffle = jax.vmap(lambda k: jax.random.permutation(k, three))
  distributed = shuffle(jax.random.split(keys[2], 3))
  by_rule = jnp.stack([*progressions, *sums, distributed])
  return by_rule[rule] % num_values


def draw_panels(
    key: jax.Array, rules: jax.Array, num_values: int, is_permuted: bool = True
) -> jax.Array:
  """Returns an instance, panels [3 rows, 3 columns, K].

  Args:
    key: the key of all draws.
    rules: the rules of the features, [K].
    num_values: F.
    is_permuted: whether each column has an order of features of its own.
  """
  value_key, order_key = jax.random.split(key)
  keys = jax.random.split(value_key, len(rules))
  features = jax.vmap(lambda k, rule: draw_feature(k, rule, num_values))(
      keys, rules
  )
  panels = jnp.moveaxis(features, 0, -1)
  if not is_permuted:
    return panels
  order = jax.vmap(lambda k: jax.random.permutation(k, len(rules)))(
      jax.random.split(order_key, 3)
  )
  return jnp.take_along_axis(panels, order[None], axis=-1)


def draw_split(
    key: jax.Array, multisets: np.ndarray, ood_fraction: float
) -> Multisets:
  """Splits multisets [C, K] until training has every rule.

  Raises:
    UserError: if it never does.
  """
  num_ood = math.floor(len(multisets) * ood_fraction)
  draw_key = key
  for redraw in range(1, _MAX_REDRAWS + 1):
    shuffled = jax.random.permutation(draw_key, jnp.asarray(multisets))
    if len(np.unique(shuffled[num_ood:])) == len(RULES):
      return Multisets(shuffled[num_ood:], shuffled[:num_ood])
    draw_key = jax.random.fold_in(key, redraw)
  raise errors.UserError(
      f'task.ood_fraction is {ood_fraction}; it must be smaller: none of'
      f' {_MAX_REDRAWS} random splits has every rule in training.'
  )


@rules.enforce('task')
def make(
    *,
    num_features: Annotated[int, rules.between(1, _MAX_FEATURES)],
    num_values: Annotated[
        int,
        rules.at_least(
            5, ': modulo fewer values, some progressions are the same rule'
        ),
    ],
    ood_fraction: float,
) -> base.TaskDistribution:
  """Returns the task distribution.

  A task is one instance. Its support set is the eight panels that are given, a
  token per feature; its query set is the features of the last panel, whose
  inputs are zeros. Latents name the rule of each feature: [K, 8], L = K.

  Splits: 'train'; 'valid' and 'test', fresh draws of it; 'ood', multisets of
  rules that are not trained on; and those of `UNPERMUTED`.

  K is `num_features`, F `num_values`; a share of the multisets is held out
  (`ood_fraction`).

  Raises:
    UserError: for an impossible value; names the field.
  """
  multisets = list_multisets(num_features)
  errors.require(
      0 < ood_fraction < 1 and len(multisets) * ood_fraction >= 1,
      'task.ood_fraction',
      ood_fraction,
      f'it must be below 1 and hold out at least one of {len(multisets)}'
      ' multisets',
  )
  num_tokens = _NUM_CONTEXT * num_features
  base.check_size(
      'num_features and task.num_values',
      (num_tokens + num_features) * num_values,
  )

  def rules_of(params: Multisets, split: str) -> jax.Array:
    drawn_from = UNPERMUTED.get(split, split)
    return params.ood if drawn_from == 'ood' else params.train

  def sample_latent(params: Multisets, key: jax.Array, split: str) -> jax.Array:
    rules = jax.random.choice(key, rules_of(params, split))
    return jax.nn.one_hot(rules, len(RULES))

  def sample_examples(
      params: Multisets, key: jax.Array, latent: jax.Array, split: str
  ) -> tuple[base.Batch, base.Batch]:
    del params  # All instances have the same rules to choose from.
    panels = draw_panels(
        key, latent.argmax(-1), num_values, split not in UNPERMUTED
    )
    features = panels.ravel()
    context, answer = features[:num_tokens], features[num_tokens:]
    return (
        base.examples(jax.nn.one_hot(context, num_values), context),
        base.examples(jnp.zeros((num_features, num_values)), answer),
    )

  return base.TaskDistribution(
      input_dim=num_values,
      output_dim=num_values,
      num_modules=len(RULES),
      objective=objectives.ACTIONS,
      evaluation_splits=('valid', 'test', 'ood', *UNPERMUTED),
      init=lambda key: draw_split(
          randomness.stream(key, 'multisets'), multisets, ood_fraction
      ),
      sample_latent=sample_latent,
      sample_examples=sample_examples,
      num_combinations=lambda params, split: len(rules_of(params, split)),
      sequence_lengths=(num_tokens, num_features),
  )

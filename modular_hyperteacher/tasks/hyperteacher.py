"""The hyperteacher: a network whose hidden weights are composed of modules.

Source: Section 4.1, Appendix C.2.1. Every task composes the hidden layers of a
teacher network from a few of M modules. The student sees only inputs and soft
labels:

  h_0 = relu(x W_in / sqrt(X))
  h_l = relu(h_{l-1} W_l(z) / sqrt(H)),   l = 1, ..., L
  y   = h_L W_out / sqrt(H)
  (vec W_1(z), ..., vec W_L(z)) = (z^1, ..., z^L) Gamma

W_in, W_out and Gamma are fixed. Gamma is dense: the mask of any layer affects
all generated matrices, as in the authors' released code. (The paper describes
a single mask.) With one hidden layer, the input matrix itself is generated.

Worked example, M = 3, two generated layers: the task with masks 100 and 011
sums rows 0, 4 and 5 of Gamma. W_1 is the first H^2 columns of the sum, W_2 the
last H^2.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import encodings
from modular_hyperteacher.tasks import objectives
from modular_hyperteacher.tasks.supports import splits
from modular_hyperteacher.untrusted import rules


class HyperteacherParams(NamedTuple):
  """The parameters that all tasks of a seed share."""

  input_weights: jax.Array  # [X, H]; [0, 0] if the input layer is generated
  generator: jax.Array  # Gamma, [L * M, size of all generated matrices]
  output_weights: jax.Array  # [H, Y]
  standardisation_inputs: jax.Array  # [num_standardisation, X]
  split: splits.SplitParams


@dataclasses.dataclass(frozen=True)
class Teacher:
  """Sizes and forward pass of the teacher network."""

  input_dim: int  # X
  output_dim: int  # Y
  hidden_dim: int  # H
  num_hidden: int  # Layers: all but the first are generated, or a single one.

  @property
  def num_layers(self) -> int:
    """L, the number of generated layers."""
    return max(self.num_hidden - 1, 1)

  @property
  def fan_in(self) -> int:
    """Rows of a generated matrix."""
    return self.input_dim if self.num_hidden == 1 else self.hidden_dim

  def check_size(self, num_modules: int) -> None:
    """Raises UserError if Gamma would be too large."""
    base.check_size(
        'num_modules, task.teacher_hidden_dim and task.teacher_num_hidden',
        self.num_layers**2
        * num_modules
        * self.hidden_dim
        * max(self.hidden_dim, self.input_dim),
    )

  def draw_weights(
      self, key: jax.Array, num_modules: int
  ) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns W_in, Gamma and W_out of a seed, as in `HyperteacherParams`."""
    in_key, generator_key, out_key = jax.random.split(key, 3)
    fixed = (self.input_dim, self.hidden_dim) if self.num_hidden > 1 else (0, 0)
    size = self.num_layers * self.fan_in * self.hidden_dim
    return (
        _truncated_normal(in_key, fixed),
        _truncated_normal(generator_key, (self.num_layers * num_modules, size)),
        _truncated_normal(out_key, (self.hidden_dim, self.output_dim)),
    )

  def generate(self, generator: jax.Array, latent: jax.Array) -> jax.Array:
    """Returns the generated matrices, [L, fan_in, H], of a latent [L, M]."""
    flat = latent.reshape(-1) @ generator
    return flat.reshape(self.num_layers, -1, self.hidden_dim)

  def respond(
      self, params: HyperteacherParams, generated: jax.Array, inputs: jax.Array
  ) -> jax.Array:
    """Returns the raw outputs [N, Y], given the result of `generate`."""
    hidden = inputs
    if self.num_hidden > 1:
      # Under `vmap` over tasks, shared inputs are embedded only once.
      scaled = params.input_weights / math.sqrt(self.input_dim)
      hidden = jax.nn.relu(inputs @ scaled)
    for weights in generated:
      hidden = jax.nn.relu(hidden @ (weights / math.sqrt(weights.shape[0])))
    return hidden @ (params.output_weights / math.sqrt(self.hidden_dim))

  def label(
      self,
      params: HyperteacherParams,
      latent: jax.Array,
      inputs: jax.Array,
      temperature: float,
  ) -> jax.Array:
    """Returns the targets [N, Y] of inputs [N, X]."""
    generated = self.generate(params.generator, latent)
    reference = self.respond(params, generated, params.standardisation_inputs)
    outputs = self.respond(params, generated, inputs)
    return soft_labels(
        outputs, reference.mean(0), reference.std(0), temperature
    )


def soft_labels(
    outputs: jax.Array, mean: jax.Array, std: jax.Array, temperature: float
) -> jax.Array:
  """Returns target distributions [N, Y], given raw teacher outputs [N, Y]."""
  # In a narrow teacher, some tasks have no active hidden unit. Their outputs
  # are constant, and one such task would make the whole meta-batch NaN.
  std = jnp.where(std > 0, std, 1.0)
  return jax.nn.softmax((outputs - mean[None]) / std[None] / temperature)


@rules.enforce('task')
def make(
    *,
    num_modules: int,
    max_active: int,
    task_support: str,
    fraction_ood: float,
    input_dim: rules.Count,
    output_dim: rules.Count,
    teacher_hidden_dim: rules.Count,
    teacher_num_hidden: rules.Count,
    num_support: rules.Count,
    num_query: rules.Count,
    temperature: rules.Positive,
    num_standardisation: rules.Count,
    repeat_empty: bool = False,
    repeat_ood: bool = False,
    encoding: str | None = None,
) -> base.TaskDistribution:
  """Returns the hyperteacher's task distribution.

  Inputs are uniform on [-1, 1]^X. Targets are the softmax, at `temperature`,
  of the standardised teacher outputs; their argmax is the label. Outputs are
  standardised per task and unit, on `num_standardisation` inputs that all
  tasks share. With an `encoding`, tasks are given: see `encodings` for how.

  Raises:
    UserError: for impossible sizes or splits; names the field.
  """
  teacher = Teacher(
      input_dim, output_dim, teacher_hidden_dim, teacher_num_hidden
  )
  teacher.check_size(num_modules)
  base.check_size('num_standardisation', num_standardisation * input_dim)
  support = _make_support(
      task_support,
      repeat_empty=repeat_empty,
      repeat_ood=repeat_ood,
      num_modules=num_modules,
      max_active=max_active,
      num_layers=teacher.num_layers,
      fraction_ood=fraction_ood,
  )

  def sample_examples(
      params: HyperteacherParams, key: jax.Array, latent: jax.Array, split: str
  ) -> tuple[base.Batch, base.Batch]:
    del split  # All splits have the same number of examples.
    inputs = _uniform(key, (num_support + num_query, input_dim))
    targets = teacher.label(params, latent, inputs, temperature)
    return base.divide(base.examples(inputs, targets), num_support)

  task = base.TaskDistribution(
      input_dim=input_dim,
      output_dim=output_dim,
      num_modules=num_modules,
      objective=objectives.SOFT_LABELS,
      evaluation_splits=support.evaluation_splits,
      init=lambda key: HyperteacherParams(
          *teacher.draw_weights(randomness.stream(key, 'teacher'), num_modules),
          _uniform(
              randomness.stream(key, 'standardisation'),
              (num_standardisation, input_dim),
          ),
          support.init(randomness.stream(key, 'split')),
      ),
      sample_latent=lambda params, key, split: support.sample(
          params.split, key, split
      ).astype(jnp.float32),
      sample_examples=sample_examples,
      num_combinations=lambda params, split: support.count(params.split, split),
  )
  if encoding is None:
    return task
  num_entries = teacher.num_layers * num_modules
  return encodings.give(
      task, encoding, num_entries=num_entries, num_support=num_support
  )


def _make_support(
    task_support: str,
    *,
    repeat_empty: bool,
    repeat_ood: bool,
    num_modules: int,
    **sizes: Any,
) -> splits.TaskSupport:
  """Returns the splits, with OOD(K=k) for the powers of two up to M.

  If training uses all combinations of k modules, OOD(K=k) is empty and has no
  results. With `repeat_empty`, these training combinations are then evaluated
  instead; with `repeat_ood`, as in the released code, a single OOD combination,
  which need not have k modules.
  """
  errors.require(
      not repeat_empty or task_support not in ('connected', 'disconnected'),
      'task.repeat_empty',
      repeat_empty,
      f"with task.task_support '{task_support}' it must be False: there is no"
      ' combination to repeat',
  )
  errors.require(
      not (repeat_empty and repeat_ood),
      'task.repeat_ood',
      repeat_ood,
      'with task.repeat_empty it must be False',
  )
  ood_ks = tuple(2**i for i in range(max(num_modules, 1).bit_length()))
  support = splits.make(
      task_support, num_modules=num_modules, ood_ks=ood_ks, **sizes
  )
  if not (repeat_empty or repeat_ood):
    return support

  def sample(
      params: splits.SplitParams, key: jax.Array, split: str
  ) -> jax.Array:
    masks = support.sample(params, key, split)
    if not (repeat_ood and split in support.ood_names):
      return masks
    one = support.sample(params, jax.random.key(0), 'ood')
    is_empty = params.num_ood_k[support.ood_names.index(split)] == 0
    return jnp.where(is_empty, one, masks)

  return dataclasses.replace(
      support,
      sample=sample,
      count=lambda params, split: max(support.count(params, split), 1),
  )


def _truncated_normal(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
  """Standard normal on [-2, 2], not rescaled to unit variance (App. D)."""
  return jax.random.truncated_normal(key, -2.0, 2.0, shape)


def _uniform(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
  return jax.random.uniform(key, shape, minval=-1.0, maxval=1.0)

"""The hyperteacher: a network whose hidden weights modules compose.

Source: Section 4.1, Appendix C.2.1. Every task combines a few of M modules
into the hidden layers of one teacher network; the student sees inputs and soft
labels, never the modules:

  h_0 = relu(x W_in / sqrt(X))
  h_l = relu(h_{l-1} W_l(z) / sqrt(H)),   l = 1, ..., L
  y   = h_L W_out / sqrt(H)
  (vec W_1(z), ..., vec W_L(z)) = (z^1, ..., z^L) Gamma

W_in, W_out and Gamma are fixed. Gamma is dense: the mask of any layer
influences all generated matrices, as in the authors' released code. (The paper
describes a single mask.) With one hidden layer the input matrix is generated.

Worked example, M = 3, two generated layers: the task with masks 100 and 011
generates W_1 and W_2 from row 0, plus rows 4 and 5, of Gamma: W_1 takes the
first H^2 columns of that sum, W_2 the last H^2.
"""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from modular_hyperteacher import randomness
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import supports


class HyperteacherParams(NamedTuple):
  """What all tasks of a seed share."""

  input_weights: base.Array  # [X, H]; [0, 0] if the input layer is generated
  generator: base.Array  # Gamma, [L * M, size of all generated matrices]
  output_weights: base.Array  # [H, Y]
  standardisation_inputs: base.Array  # [1000, X]
  split: supports.SplitParams


@dataclasses.dataclass(frozen=True)
class Teacher:
  """Sizes of the teacher network, and what it computes.

  Attributes:
    input_dim: X.
    output_dim: Y.
    hidden_dim: H.
    num_hidden: hidden layers; all but the first are generated, or the input
      layer if there is only one.
  """

  input_dim: int
  output_dim: int
  hidden_dim: int
  num_hidden: int

  @property
  def num_layers(self) -> int:
    """L, the number of generated layers."""
    return max(self.num_hidden - 1, 1)

  def generate(self, generator: base.Array, latent: base.Array) -> base.Array:
    """Returns the generated matrices, [L, fan_in, H], of a latent [L, M]."""
    flat = latent.reshape(-1) @ generator
    return flat.reshape(self.num_layers, -1, self.hidden_dim)

  def embed(self, input_weights: base.Array, inputs: base.Array) -> base.Array:
    """Returns what enters the generated layers; it is the same in all tasks."""
    if self.num_hidden == 1:
      return inputs
    return jax.nn.relu(inputs @ (input_weights / math.sqrt(self.input_dim)))

  def respond(
      self,
      generated: base.Array,
      output_weights: base.Array,
      hidden: base.Array,
  ) -> base.Array:
    """Returns the raw outputs [N, Y] from what `embed` returned."""
    for weights in generated:
      hidden = jax.nn.relu(hidden @ (weights / math.sqrt(weights.shape[0])))
    return hidden @ (output_weights / math.sqrt(self.hidden_dim))


def soft_labels(
    outputs: base.Array, mean: base.Array, std: base.Array, temperature: float
) -> base.Array:
  """Returns target distributions, [N, Y], from raw teacher outputs [N, Y]."""
  # Combined modules can leave a narrow teacher without an active hidden unit.
  # Its outputs are constant, and a single such task would make a whole
  # meta-batch NaN.
  std = jnp.where(std > 0, std, 1.0)
  return jax.nn.softmax((outputs - mean[None]) / std[None] / temperature)


def make(
    *,
    num_modules: int,
    max_active: int,
    task_support: str,
    fraction_ood: float,
    input_dim: int,
    output_dim: int,
    teacher_hidden_dim: int,
    teacher_num_hidden: int,
    num_support: int,
    num_query: int,
    temperature: float,
    num_standardisation: int,
) -> base.TaskDistribution:
  """Returns the hyperteacher's task distribution.

  Inputs are uniform on [-1, 1]^X. Targets are the softmax, at `temperature`,
  of the teacher's outputs, standardised per task and output unit on
  `num_standardisation` inputs that all tasks share. Their argmax is the label.

  Splits are those of `supports.make`, with OOD(K=k) for the powers of two up
  to `num_modules`.

  Raises:
    ValueError: for impossible sizes or splits; names the field.
  """
  for field, value in (
      ('input_dim', input_dim),
      ('output_dim', output_dim),
      ('teacher_hidden_dim', teacher_hidden_dim),
      ('teacher_num_hidden', teacher_num_hidden),
      ('num_support', num_support),
      ('num_query', num_query),
      ('temperature', temperature),
      ('num_standardisation', num_standardisation),
  ):
    if not 0 < value < math.inf:
      raise ValueError(f'task.{field} is {value}; it must be positive.')
  teacher = Teacher(
      input_dim, output_dim, teacher_hidden_dim, teacher_num_hidden
  )
  ood_ks = tuple(2**i for i in range(max(num_modules, 1).bit_length()))
  task_support_ = supports.make(
      task_support,
      num_modules=num_modules,
      max_active=max_active,
      num_layers=teacher.num_layers,
      fraction_ood=fraction_ood,
      ood_ks=ood_ks,
  )

  def init(key):
    return _init(key, teacher, num_modules, num_standardisation, task_support_)

  def sample_latent(params, key, split):
    return task_support_.sample(params.split, key, split).astype(jnp.float32)

  def sample_examples(params, key, latent, split):
    del split  # The same number of examples everywhere.
    inputs = _uniform(key, (num_support + num_query, input_dim))
    targets = _targets(teacher, params, latent, inputs, temperature)
    batch = base.Batch(inputs, targets, jnp.ones(inputs.shape[0]))
    return (
        jax.tree.map(lambda x: x[:num_support], batch),
        jax.tree.map(lambda x: x[num_support:], batch),
    )

  return base.TaskDistribution(
      input_dim=input_dim,
      output_dim=output_dim,
      num_modules=num_modules,
      evaluation_splits=('valid', 'test', 'ood')
      + tuple(f'ood_k{k}' for k in ood_ks),
      init=init,
      sample_latent=sample_latent,
      sample_examples=sample_examples,
      num_combinations=lambda params, split: task_support_.count(
          params.split, split
      ),
  )


def _init(key, teacher, num_modules, num_standardisation, task_support):
  """Draws the teacher, the split and the standardisation inputs."""
  in_key, generator_key, out_key = jax.random.split(
      randomness.stream(key, 'teacher'), 3
  )
  width = teacher.hidden_dim
  fixed_input = teacher.num_hidden > 1
  fan_in = width if fixed_input else teacher.input_dim
  return HyperteacherParams(
      input_weights=_truncated_normal(
          in_key, (teacher.input_dim, width) if fixed_input else (0, 0)
      ),
      generator=_truncated_normal(
          generator_key,
          (
              teacher.num_layers * num_modules,
              teacher.num_layers * fan_in * width,
          ),
      ),
      output_weights=_truncated_normal(out_key, (width, teacher.output_dim)),
      standardisation_inputs=_uniform(
          randomness.stream(key, 'standardisation'),
          (num_standardisation, teacher.input_dim),
      ),
      split=task_support.init(randomness.stream(key, 'split')),
  )


def _targets(teacher, params, latent, inputs, temperature):
  """Returns soft labels [N, Y]; statistics are computed once for the task."""
  generated = teacher.generate(params.generator, latent)

  def respond(inputs):
    # Under `vmap` over tasks, what `embed` returns for inputs that tasks
    # share is computed once for all of them.
    hidden = teacher.embed(params.input_weights, inputs)
    return teacher.respond(generated, params.output_weights, hidden)

  reference = respond(params.standardisation_inputs)
  return soft_labels(
      respond(inputs), reference.mean(0), reference.std(0), temperature
  )


def _truncated_normal(key, shape):
  """Standard normal on [-2, 2], not rescaled to unit variance (App. D)."""
  return jax.random.truncated_normal(key, -2.0, 2.0, shape)


def _uniform(key, shape):
  return jax.random.uniform(key, shape, minval=-1.0, maxval=1.0)

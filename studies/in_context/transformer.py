"""A transformer on a sequence of examples, read at its last tokens.

Source: Section 3 of Kobayashi et al. (2024); details as in the released code
of Schug et al. (2025). Blocks are pre-LayerNorm; every token sees all tokens.
"""

import dataclasses
from typing import Annotated, ClassVar, NamedTuple

import haiku as hk
import jax

from modular_hyperteacher import errors
from modular_hyperteacher.studies.in_context import attention
from modular_hyperteacher.untrusted import rules


@dataclasses.dataclass(frozen=True)
class TransformerConfig(rules.Record):
  """The transformer.

  Raises:
    UserError: for an impossible value; names the field.
  """

  BLOCK: ClassVar[str] = 'model.body'

  embedding_dim: rules.Count  # E
  num_layers: rules.Layers  # Blocks.
  num_heads: rules.Count  # A
  # Width of queries, keys and values, over all heads; None for E.
  qkv_dim: int | None
  feedforward_dim: rules.Count  # Hidden units, in each block.
  attention: Annotated[str, rules.one_of(attention.KINDS)]
  # Share of the pairs of tokens that are dropped from the scores in training.
  attention_dropout: rules.BelowOne

  def __post_init__(self) -> None:
    super().__post_init__()
    field = 'embedding_dim' if self.qkv_dim is None else 'qkv_dim'
    errors.require(
        self.heads_dim >= 1 and self.heads_dim % self.num_heads == 0,
        f'model.body.{field}',
        self.heads_dim,
        f'it must be a multiple of the {self.num_heads} heads',
    )

  @property
  def heads_dim(self) -> int:
    """A K, the width of queries, keys and values over all heads."""
    return self.embedding_dim if self.qkv_dim is None else self.qkv_dim


class LastTokens(NamedTuple):
  """What a transformer makes of the last Q tokens of a sequence."""

  output: jax.Array  # [..., Q, E], normalised.
  streams: list[jax.Array]  # The residual stream after each block, [..., Q, E].
  # Per block, the heads' scores of a token with itself, [..., Q, A].
  codes: list[jax.Array]


class Transformer(hk.Module):
  """Embeds tokens, runs all blocks, returns the last tokens' states."""

  def __init__(self, config: TransformerConfig, is_training: bool) -> None:
    super().__init__(name='body')
    self._config = config
    self._dropout_rate = config.attention_dropout if is_training else 0.0

  def __call__(self, tokens: jax.Array, num_read: int = 1) -> LastTokens:
    """Returns what has become of the last Q of tokens [..., T, features]."""
    config = self._config
    hidden = linear(config.embedding_dim, 'embedding')(tokens)
    streams, codes = [], []
    for layer in range(config.num_layers):
      # Nothing reads what the last block makes of the other tokens.
      is_last = layer == config.num_layers - 1
      first = tokens.shape[-2] - num_read if is_last else 0
      hidden, code = self._block(hidden, first, f'block_{layer}')
      streams.append(hidden[..., -num_read:, :])
      codes.append(code[..., -num_read:, :])
    return LastTokens(_layer_norm('final_norm')(streams[-1]), streams, codes)

  def _block(
      self, hidden: jax.Array, first: int, name: str
  ) -> tuple[jax.Array, jax.Array]:
    """Returns the residual stream and the codes from token `first` on."""
    config = self._config
    attend = attention.Attention(
        config.attention,
        num_heads=config.num_heads,
        qkv_dim=config.heads_dim,
        dropout_rate=self._dropout_rate,
        name=f'{name}_attention',
    )
    normed = _layer_norm(f'{name}_attention_norm')(hidden)
    attended, code = attend(normed, first)
    hidden = hidden[..., first:, :] + attended
    inner = _layer_norm(f'{name}_feedforward_norm')(hidden)
    inner = linear(config.feedforward_dim, f'{name}_feedforward_in')(inner)
    out = linear(config.embedding_dim, f'{name}_feedforward_out')
    return hidden + out(jax.nn.gelu(inner)), code


def linear(width: int, name: str) -> hk.Linear:
  """Returns a linear layer whose initial weights have variance 1/fan_in."""
  return hk.Linear(width, w_init=attention.WEIGHTS, name=name)


def _layer_norm(name: str) -> hk.LayerNorm:
  return hk.LayerNorm(
      -1, create_scale=True, create_offset=True, eps=1e-6, name=name
  )

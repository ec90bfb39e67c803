"""The recurrence of LSTMs, with a derivative of its own.

With gates i, f, o (sigmoid) and g (tanh), as in PyTorch,

  c' = f c + i g,    h' = o tanh(c').

What does not depend on the state before is computed outside, for all steps at
once: the inputs' part of the gates, and in the backward pass the gradient of
the weights, which reverse-mode differentiation of a scan would add up matrix
by matrix. On a CPU, steps that no row of a batch needs are skipped.
"""

import functools
from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp


class State(NamedTuple):
  """Of one layer."""

  h: jax.Array  # [N, H]
  c: jax.Array  # [N, H]


def cell(projected: jax.Array, weights: jax.Array, state: State) -> State:
  """Returns the state after one step.

  Args:
    projected: [N, 4H], the input's part of the gates i, f, o, g, and biases.
    weights: [H, 4H], the state's part.
    state: the state before.
  """
  return _advance(_activate(projected + state.h @ weights), state)


@jax.custom_vjp
def scan(
    projected: tuple[jax.Array, ...],
    weights: tuple[jax.Array, ...],
    masks: tuple[jax.Array, ...],
    starts: tuple[State, ...],
) -> tuple[jax.Array, ...]:
  """Runs some LSTMs over the same number of steps, side by side.

  The two directions of a layer do not depend on each other; side by side they
  take half as many steps that wait for the one before.

  Args:
    projected: per LSTM, [T, N, 4H], the inputs' part of the gates, and biases.
    weights: per LSTM, [H, 4H].
    masks: per LSTM, [T, N] bool; where False the state becomes zero.
    starts: per LSTM, the state before the first step.

  Returns:
    Per LSTM, [T, N, H], all h.
  """
  states, _ = _forward(projected, weights, masks, starts)
  return tuple(state.h for state in states)


def _activate(gates):
  size = 3 * gates.shape[-1] // 4
  sigmoids, g = jax.nn.sigmoid(gates[:, :size]), jnp.tanh(gates[:, size:])
  return jnp.concatenate([sigmoids, g], axis=1)


def _advance(gates, state):
  i, f, o, g = jnp.split(gates, 4, axis=1)
  c = f * state.c + i * g
  return State(o * jnp.tanh(c), c)


def _retreat(gates, c, before, weights, after):
  """Returns the gradients of the state before and of `projected`.

  Args:
    gates: [N, 4H], activated.
    c: [N, H], the new one.
    before: the state before.
    weights: [H, 4H].
    after: the gradient of the new state.
  """
  i, f, o, g = jnp.split(gates, 4, axis=1)
  tanh_c = jnp.tanh(c)
  c_grad = after.c + after.h * o * (1 - tanh_c**2)
  projected_grad = jnp.concatenate(
      [
          c_grad * g * i * (1 - i),
          c_grad * before.c * f * (1 - f),
          after.h * tanh_c * o * (1 - o),
          c_grad * i * (1 - g**2),
      ],
      axis=1,
  )
  return State(projected_grad @ weights.T, c_grad * f), projected_grad


def _forward(projected, weights, masks, starts):
  """Returns, per LSTM, all states and all activated gates."""

  def advance(states, inputs):
    new, all_gates = [], []
    for state, w, x, mask in zip(states, weights, *inputs):
      gates = _activate(x + state.h @ w)
      new.append(_masked(_advance(gates, state), mask))
      all_gates.append(gates)
    return tuple(new), tuple(all_gates)

  def rest(states, inputs):
    return jax.tree.map(jnp.zeros_like, (states, inputs[0]))

  def step(states, inputs):
    needed, *inputs = inputs
    states, gates = _if(needed, advance, rest, states, inputs)
    return states, (states, gates)

  _, saved = lax.scan(step, starts, (_needed(masks), projected, masks))
  return saved


def _forward_saving(projected, weights, masks, starts):
  states, gates = _forward(projected, weights, masks, starts)
  saved = states, gates, weights, masks, starts
  return tuple(state.h for state in states), saved


def _backward(saved, cotangents):
  states, gates, weights, masks, starts = saved
  befores = jax.tree.map(
      lambda x, start: jnp.concatenate([start[None], x[:-1]]), states, starts
  )

  def retreat(afters, inputs):
    pairs = []
    for after, w, h_grad, mask, *step in zip(afters, weights, *inputs):
      after = _masked(State(after.h + h_grad, after.c), mask)
      pairs.append(_retreat(*step, w, after))
    return tuple(zip(*pairs))

  def rest(afters, inputs):
    return jax.tree.map(jnp.zeros_like, (afters, inputs[2]))

  def step(afters, inputs):
    needed, *inputs = inputs
    return _if(needed, retreat, rest, afters, inputs)

  start_grads, projected_grads = lax.scan(
      step,
      jax.tree.map(jnp.zeros_like, starts),
      (
          _needed(masks),
          cotangents,
          masks,
          gates,
          tuple(state.c for state in states),
          befores,
      ),
      reverse=True,
  )
  weight_grads = tuple(
      jnp.einsum('tnh,tnk->hk', before.h, grads)
      for before, grads in zip(befores, projected_grads)
  )
  return projected_grads, weight_grads, None, start_grads


scan.defvjp(_forward_saving, _backward)


def _if(needed, run, rest, *args):
  """Runs a step if it is needed; what it is for rows that are over is zero.

  On accelerators a conditional asks the host, which takes longer than a step.
  """
  if jax.default_backend() == 'cpu':
    return lax.cond(needed, run, rest, *args)
  return run(*args)


def _needed(masks):
  """[T] bool, whether any row has anything at this step."""
  return functools.reduce(jnp.logical_or, masks).any(1)


def _masked(state, mask):
  return jax.tree.map(lambda x: jnp.where(mask[:, None], x, 0.0), state)

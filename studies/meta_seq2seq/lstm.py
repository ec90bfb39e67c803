"""The recurrence of LSTMs, with a custom derivative.

With gates i, f, o (sigmoid) and g (tanh), as in PyTorch,

  c' = f c + i g,    h' = o tanh(c').

Two parts do not depend on the previous state and are computed for all steps at
once: the inputs' contribution to the gates and, in the backward pass, the
gradient of the weights. On a CPU, steps that no row needs are skipped.
"""

from collections.abc import Callable, Sequence
import functools
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp


class State(NamedTuple):
  """The state of one layer."""

  h: jax.Array  # [N, H]
  c: jax.Array  # [N, H]


# One entry per LSTM.
_Arrays = tuple[jax.Array, ...]
_States = tuple[State, ...]


@jax.custom_vjp
def scan(
    projected: _Arrays, weights: _Arrays, masks: _Arrays, starts: _States
) -> _Arrays:
  """Runs several LSTMs in parallel over the same number of steps.

  The two directions of a layer are independent; running them in parallel halves
  the number of sequential steps.

  Args:
    projected: the inputs' contribution to the gates i, f, o, g, biases
      included, [T, N, 4H] per LSTM.
    weights: [H, 4H] per LSTM.
    masks: [T, N] bool per LSTM; where False the state becomes zero.
    starts: the initial state of each LSTM.

  Returns:
    h of every step, [T, N, H] per LSTM.
  """
  outputs, _ = _forward(projected, weights, masks, starts)
  return outputs


def _activate(gates: jax.Array) -> jax.Array:
  size = 3 * gates.shape[-1] // 4
  sigmoids, g = jax.nn.sigmoid(gates[:, :size]), jnp.tanh(gates[:, size:])
  return jnp.concatenate([sigmoids, g], axis=1)


def _advance(gates: jax.Array, state: State) -> State:
  i, f, o, g = jnp.split(gates, 4, axis=1)
  c = f * state.c + i * g
  return State(o * jnp.tanh(c), c)


def _backpropagate(
    gates: jax.Array,
    c: jax.Array,
    before: State,
    weights: jax.Array,
    grad: State,
) -> tuple[State, jax.Array]:
  """Returns the gradients of the previous state and of `projected`.

  Gates [N, 4H] are activated; c [N, H] and the gradient are the new state's.
  """
  i, f, o, g = jnp.split(gates, 4, axis=1)
  tanh_c = jnp.tanh(c)
  c_grad = grad.c + grad.h * o * (1 - tanh_c**2)
  projected_grad = jnp.concatenate(
      [
          c_grad * g * i * (1 - i),
          c_grad * before.c * f * (1 - f),
          grad.h * tanh_c * o * (1 - o),
          c_grad * i * (1 - g**2),
      ],
      axis=1,
  )
  return State(projected_grad @ weights.T, c_grad * f), projected_grad


class _Saved(NamedTuple):
  """What the backward pass needs; one entry per LSTM."""

  states: _States  # [T, N, H]
  gates: _Arrays  # [T, N, 4H], activated
  weights: _Arrays
  masks: _Arrays
  starts: _States


def _forward(
    projected: _Arrays, weights: _Arrays, masks: _Arrays, starts: _States
) -> tuple[_Arrays, _Saved]:
  """Returns what `scan` returns, and what the backward pass needs."""

  def advance(
      states: _States, inputs: Sequence[Any]
  ) -> tuple[_States, _Arrays]:
    new, all_gates = [], []
    for state, w, x, mask in zip(states, weights, *inputs):
      gates = _activate(x + state.h @ w)
      new.append(_masked(_advance(gates, state), mask))
      all_gates.append(gates)
    return tuple(new), tuple(all_gates)

  def skip(states: _States, inputs: Sequence[Any]) -> tuple[_States, _Arrays]:
    return jax.tree.map(jnp.zeros_like, (states, inputs[0]))

  def step(states: _States, inputs: tuple[Any, ...]) -> tuple[_States, Any]:
    needed, *step_inputs = inputs
    states, gates = _run_if(needed, advance, skip, states, step_inputs)
    return states, (states, gates)

  steps = _needed(masks), projected, masks
  _, (states, gates) = lax.scan(step, starts, steps)
  saved = _Saved(states, gates, weights, masks, starts)
  return tuple(state.h for state in states), saved


def _backward(saved: _Saved, cotangents: _Arrays) -> tuple[Any, Any, None, Any]:
  """Returns the gradients of the arguments of `scan`."""
  states, gates, weights, masks, starts = saved
  befores = jax.tree.map(
      lambda x, start: jnp.concatenate([start[None], x[:-1]]), states, starts
  )

  def retreat(grads: _States, inputs: Sequence[Any]) -> tuple[_States, _Arrays]:
    state_grads, projected_grads = [], []
    for grad, w, h_grad, mask, activated, c, before in zip(
        grads, weights, *inputs
    ):
      grad = _masked(State(grad.h + h_grad, grad.c), mask)
      state_grad, projected_grad = _backpropagate(activated, c, before, w, grad)
      state_grads.append(state_grad)
      projected_grads.append(projected_grad)
    return tuple(state_grads), tuple(projected_grads)

  def skip(grads: _States, inputs: Sequence[Any]) -> tuple[_States, _Arrays]:
    return jax.tree.map(jnp.zeros_like, (grads, inputs[2]))

  def step(grads: _States, inputs: tuple[Any, ...]) -> tuple[_States, _Arrays]:
    needed, *step_inputs = inputs
    return _run_if(needed, retreat, skip, grads, step_inputs)

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


scan.defvjp(_forward, _backward)


def _run_if(
    needed: jax.Array,
    run: Callable[..., Any],
    skip: Callable[..., Any],
    *args: Any,
) -> Any:
  """Runs a step on a CPU if it is needed, else `skip`, which returns zeros.

  On accelerators always runs it: there a conditional synchronises with the
  host, which takes longer than a step, and masked rows are zero anyway.
  """
  if jax.default_backend() == 'cpu':
    return lax.cond(needed, run, skip, *args)
  return run(*args)


def _needed(masks: tuple[jax.Array, ...]) -> jax.Array:
  """Returns whether any row has a symbol at each step, [T] bool."""
  return functools.reduce(jnp.logical_or, masks).any(1)


def _masked(state: State, mask: jax.Array) -> State:
  return jax.tree.map(lambda x: jnp.where(mask[:, None], x, 0.0), state)

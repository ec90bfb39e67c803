"""What a user's functions return is checked before it trains."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import bilevel
from modular_hyperteacher.experiments import checked
from modular_hyperteacher.experiments import contracts
from modular_hyperteacher.models import base as models
from modular_hyperteacher.tasks import base
from modular_hyperteacher.tasks import objectives

_KEY = jax.random.key(0)
_SET = base.examples(jnp.ones((4, 1)), jnp.ones((4, 2)))


def _task(**changes: Any) -> base.TaskDistribution:
  fields: dict[str, Any] = {
      'input_dim': 1,
      'output_dim': 2,
      'num_modules': 3,
      'objective': objectives.REGRESSION,
      'evaluation_splits': ('valid',),
      'init': lambda key: (),
      'sample_latent': lambda params, key, split: jnp.ones((1, 3)),
      'sample_examples': lambda params, key, latent, split: (_SET, _SET),
      'num_combinations': lambda params, split: 1,
  }
  return base.TaskDistribution(**(fields | changes))


def _sample(task: base.TaskDistribution) -> Any:
  sample = contracts.of_task('mine', task).sample
  return jax.eval_shape(lambda key: sample((), key, 'train'), _KEY)


def test_what_the_interface_says_is_returned_as_it_is() -> None:
  drawn = contracts.of_task('mine', _task()).sample((), _KEY, 'train')
  assert drawn.support is _SET and drawn.query is _SET
  # Targets are as the objective expects, metrics may be plain numbers.
  labels = base.examples(jnp.ones((4, 1)), jnp.ones(4))
  _sample(_task(sample_examples=lambda *_: [labels, labels]))
  one: Any = 1.5
  counting = base.Objective(lambda *_: one, lambda *_: {'n': one})
  task = contracts.of_task('mine', _task(objective=counting))
  found = task.objective.measure(jnp.ones((4, 2)), labels)
  assert found == {'n': 1.5, 'loss': 1.5}


@pytest.mark.parametrize(
    'latent, shown',
    [
        (jnp.ones(3), r'an array \[3\]'),
        (jnp.ones((1, 5)), r'an array \[1, 5\]'),
        (None, 'None'),
        ([jnp.ones(3)], r"\['an array \[3\]'\]"),
    ],
)
def test_a_latent_has_layers_and_modules(latent: Any, shown: str) -> None:
  task = _task(sample_latent=lambda *_: latent)
  message = (
      f"^task 'mine': sample_latent returns {shown}; it must be"
      r' \[L, 3\], for layers and num_modules'
  )
  with pytest.raises(errors.UserError, match=message):
    _sample(task)


@pytest.mark.parametrize(
    'sets, message',
    [
        (None, ' returns None; it must be two of tasks.base.Batch'),
        (_SET, r" returns Batch\(inputs='an array \[4, 1\]'.*; it must be two"),
        (((1, 2, 3), (1, 2, 3)), ' returns .*; it must be two of tasks'),
        (
            (_SET, _SET._replace(inputs=jnp.ones((4, 3)))),
            r' returns as inputs an array \[4, 3\]; it must be \[4, 1\]',
        ),
        (
            (_SET, _SET._replace(targets=jnp.ones((3, 2)))),
            r' returns as targets an array \[3, 2\]; it must have 4 rows',
        ),
        (
            (_SET, _SET._replace(mask=jnp.ones((4, 1)))),
            r' returns as mask an array \[4, 1\]; it must be \[N\]',
        ),
    ],
)
def test_sets_of_other_shapes_are_refused(sets: Any, message: str) -> None:
  task = _task(sample_examples=lambda *_: sets)
  with pytest.raises(errors.UserError, match='sample_examples' + message):
    _sample(task)


def test_an_objective_has_scalars() -> None:
  with pytest.raises(errors.UserError, match="mine': objective is 'mse'; it"):
    contracts.of_task('mine', _task(objective='mse'))
  for objective, message in (
      (
          base.Objective(lambda outputs, batch: outputs, lambda *_: {}),
          r'objective.loss returns an array \[4, 2\]; it must be a float',
      ),
      (
          base.Objective(lambda y, batch: (y > 0).sum(), lambda *_: {}),
          r'objective.loss returns an array \[\] of int32; it must be a float',
      ),
      (
          objectives.REGRESSION._replace(metrics=lambda y, batch: {'m': y}),
          r"objective.metrics returns {'m': 'an array \[4, 2\]'}; it must map",
      ),
      (
          objectives.REGRESSION._replace(metrics=lambda *_: {'m': {'n': 1.0}}),
          r"objective.metrics returns {'m': {'n': '1.0'}}; it must map",
      ),
  ):
    task = contracts.of_task('mine', _task(objective=objective))
    with pytest.raises(errors.UserError, match=message):
      task.objective.measure(jnp.ones((4, 2)), _SET)


def test_one_row_is_not_broadcast_over_examples() -> None:
  objective = contracts.of_task('mine', _task()).objective
  message = "^task 'mine': the number of outputs is 1; it must be 4, one"
  for function in (objective.loss, objective.metrics):
    with pytest.raises(errors.UserError, match=message):
      function(jnp.ones((1, 2)), _SET)


def _model(
    decode: Callable[..., Any] = lambda meta, fast, inputs: inputs * fast[None],
    **changes: Any,
) -> models.MetaModel:
  fields = {
      'init': lambda key: jnp.ones(2),
      'init_fast': lambda meta_params: meta_params,
      'encode': models.identity_encoding,
      'decode': decode,
  }
  return models.MetaModel(**(fields | changes))


def test_outputs_have_a_row_for_each_example() -> None:
  model = contracts.of_model('net', _model(), output_dim=2)
  params = jnp.ones(2), jnp.ones(2)
  assert model.predict(*params, _SET.inputs).shape == (4, 2)
  for decode, shown in (
      (lambda meta, fast, inputs: inputs[:, 0], r'an array \[4\]'),
      (lambda meta, fast, inputs: inputs, r'an array \[4, 1\]'),
      (lambda meta, fast, inputs: None, 'None'),
  ):
    model = contracts.of_model('net', _model(decode), output_dim=2)
    message = (
        f"^model 'net': decode returns {shown}; it must be"
        r' \[N, 2\], the outputs of N examples.$'
    )
    with pytest.raises(errors.UserError, match=message):
      model.predict(*params, _SET.inputs)


@pytest.mark.parametrize('function', ['init', 'init_fast'])
def test_a_missing_return_is_named(function: str) -> None:
  fields = {'init_fast': lambda meta_params: meta_params['readout']}
  model = _model(**(fields | {function: lambda argument: None}))
  if function == 'init_fast':
    model = model._replace(init=lambda key: {'readout': jnp.ones(2)})
  message = f"^model 'net': {function} returns None; it must be a tree"
  with pytest.raises(errors.UserError, match=message):
    models.count_params(contracts.of_model('net', model, output_dim=2))


@pytest.mark.parametrize('function', ['init', 'init_fast'])
@pytest.mark.parametrize(
    'leaf, shown',
    [(jnp.ones(2, int), r"'an array \[2\] of int32'"), ('one', '"\'one\'"')],
)
def test_parameters_have_gradients(
    function: str, leaf: Any, shown: str
) -> None:
  changed = contracts.of_model(
      'net', _model(**{function: lambda argument: {'w': leaf}}), output_dim=2
  )
  message = (
      rf"^model 'net': {function} returns {{'w': {shown}}}; it must be a"
      r' tree of floating-point arrays, \(\) for none.$'
  )
  with pytest.raises(errors.UserError, match=message):
    getattr(changed, function)(_KEY)


def test_what_must_be_called_is_a_function() -> None:
  for field in ('init', 'sample_latent', 'sample_examples', 'num_combinations'):
    message = f"^task 'mine': {field} is None; it must be a function.$"
    with pytest.raises(errors.UserError, match=message):
      contracts.of_task('mine', _task(**{field: None}))
  loss_only = base.Objective(lambda *_: 0.0, metrics={})  # type: ignore
  with pytest.raises(
      errors.UserError, match='objective.metrics is {}; it must'
  ):
    contracts.of_task('mine', _task(objective=loss_only))
  for field in ('init', 'init_fast', 'encode', 'decode'):
    model = _model()._replace(**{field: jnp.ones(2)})
    message = (
        rf"^model 'net': {field} is an array \[2\]; it must be a function.$"
    )
    with pytest.raises(errors.UserError, match=message):
      contracts.of_model('net', model, output_dim=2)


@pytest.mark.parametrize('field', ['input_dim', 'output_dim', 'num_modules'])
@pytest.mark.parametrize('size', [0, 2.0, None])
def test_sizes_of_a_task_are_whole_numbers(field: str, size: Any) -> None:
  message = f"^task 'mine': {field} is {size}; it must be a whole number of 1"
  with pytest.raises(errors.UserError, match=message):
    contracts.of_task('mine', _task(**{field: size}))


def test_a_model_takes_the_sizes_of_its_task() -> None:
  def make(*, output_dim: int) -> None:
    del output_dim

  message = (
      "^model.name is a function without the argument 'input_dim'; it must take"
      ' input_dim and output_dim.$'
  )
  with pytest.raises(errors.UserError, match=message):
    checked.require_parameters(make, 'model', bilevel.SIZES)

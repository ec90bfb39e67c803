"""Worlds by name.

Every task that has a name in configs is a world. Its fields at each preset come
from the configs that use it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from modular_hyperteacher import errors
from modular_hyperteacher import randomness
from modular_hyperteacher import untrusted
from modular_hyperteacher.devices import jax_settings
from modular_hyperteacher.experiments import checked
from modular_hyperteacher.experiments import components
from modular_hyperteacher.experiments import contracts
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.worlds import task_world
from modular_hyperteacher.worlds import world as worlds

PRESETS = ('smoke', 'laptop', 'paper')
# Configs of the main figures. Others are searched only for worlds that these do
# not describe.
_MAIN = ('fig2c', 'fig3b', 'fig3c', 'fig4c', 'fig4b', 'fig4e')
_Block = dict[str, Any]


def names() -> tuple[str, ...]:
  """Returns the names of all worlds."""
  return (*components.known_tasks(), *_system_worlds())


@jax_settings.always
def make(
    name: str, *, preset: str = 'laptop', seed: int = 2020, **fields: Any
) -> worlds.World:
  """Returns a world.

  Args:
    name: one of `worlds.list()`, or 'package.module:function' for a task of
      your own, whose module is imported.
    preset: 'smoke', 'laptop' or 'paper'.
    seed: it decides the teacher or the mazes and the split, as in a run with
      this seed.
    **fields: the world's, such as `task_support='random'`. All others come
      from the first config that has these values, or else from the world's
      first config.

  Raises:
    UserError: if there is no such world, or a field is impossible.
  """
  fields = {field: untrusted.plain(x) for field, x in fields.items()}
  untrusted.check(name, str, 'the world')
  if ':' in name:
    components.allow({'task': {'name': name}, 'model': {}})
  else:
    choices = *names(), 'package.module:function'
    errors.require_choice('the world', name, choices)
  described = list(_described(name, preset))
  fitting = [pair for pair in described if fields.items() <= pair[1].items()]
  if fitting:
    experiment, block = fitting[0]
    return _build(experiment, preset, block, seed)
  block = described[0][1] if described else {'name': name}
  return _build(None, preset if described else None, block | fields, seed)


@jax_settings.always
def make_only(
    name: str, preset: str, only: Sequence[str], seed: int
) -> worlds.World:
  """Returns the first world of a preset in which conditions hold.

  These are 'field=value', such as 'task_support=random'.

  Raises:
    UserError: if no config has such a world.
  """
  errors.require_choice('the world', name, names())
  runs = [
      sweeps.Run(experiment, preset, {'task': block}, str(index))
      for index, (experiment, block) in enumerate(_described(name, preset))
  ]
  if not runs:
    raise errors.UserError(f"no config has a world '{name}'.")
  run = sweeps.select(runs, list(only), what='world')[0]
  return _build(run.experiment, preset, run.config['task'], seed)


@jax_settings.always
def make_described(
    name: str, preset: str, fields: dict[str, Any], seed: int
) -> worlds.World:
  """Returns a world that a config describes, and no other.

  Use it for untrusted files, which can then choose neither code nor sizes.

  Raises:
    UserError: if no config has a world of this name with exactly these fields.
  """
  described = _described(name, preset) if name in names() else ()
  for experiment, block in described:
    if block == {'name': name, **fields}:
      return _build(experiment, preset, block, seed)
  raise errors.UserError(
      f"no config describes the world '{name}' at preset '{preset}' with these"
      ' fields; score predictions for it with World.score.'
  )


@jax_settings.always
def remake(
    experiment: str | None, preset: str | None, block: _Block, seed: int
) -> worlds.World:
  """Returns a world that was pickled."""
  if ':' in block['name']:
    components.allow({'task': block, 'model': {}})
  return _build(experiment, preset, block, seed)


def _described(name: str, preset: str) -> Iterator[tuple[str, _Block]]:
  """Yields (config, task block) of a world in the main configs, or in all."""
  errors.require_choice('preset', preset, PRESETS)
  main = list(_blocks(_MAIN, name, preset))
  yield from main or _blocks(plugins.experiments(), name, preset)


def _blocks(
    experiments: Iterable[str], name: str, preset: str
) -> Iterator[tuple[str, _Block]]:
  for experiment in experiments:
    for run in sweeps.described_runs(experiment, preset):
      if run.config['task']['name'] == name:
        yield experiment, run.config['task']


def _system_worlds() -> dict[str, Any]:
  """Returns name -> the system of a study that alone has this world."""
  systems = [system for s in plugins.studies() for system in s.systems]
  return {name: system for system in systems for name in system.tasks}


def _build(
    experiment: str | None, preset: str | None, block: _Block, seed: int
) -> worlds.World:
  seed = worlds.check_seed('seed', seed)
  fields = dict(block)
  system = _system_worlds().get(block['name'])
  if system is None:
    function = components.task_entry(fields).make
  else:
    table = plugins.resolve(f'{system.module}:TASKS')
    function = components.choose(table, 'task', fields)
  key = randomness.stream(randomness.root_key(seed), 'task')
  try:
    if system is None:
      distribution = contracts.make_task(function, block['name'], fields)
    else:
      distribution = checked.call(function, 'task', fields)
    params = worlds.on_cpu(distribution.init)(key)
  except ValueError as error:  # How tasks refuse impossible fields.
    raise errors.UserError(str(error)) from error
  parts = (block['name'], preset, experiment, fields, seed, params)
  if system is None:
    return task_world.TaskWorld(*parts, distribution)
  return plugins.resolve(system.world)(*parts, distribution)

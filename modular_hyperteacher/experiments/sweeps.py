"""Expands the sweep of a config into runs with stable ids.

A config has the blocks `task`, `models`, `training`, `execution` and a `sweep`.
A run is one point of the sweep: one task, one model, all seeds. The sweep is a
tuple of grids. A grid maps fields to lists of values; its runs are the product
of the lists. The field 'model' selects one of `models`; any other is a field of
the run, given by its path, such as 'task.num_modules', or by the end of the
path if that is unambiguous. The order of a grid's fields determines the order
of the runs and of the words in their ids.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
import dataclasses
import difflib
import functools
import hashlib
import itertools
import json
import operator
from typing import Any, TypeAlias, TypeVar

import ml_collections

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import plugins

# Field -> the values it takes, a list or tuple.
Grid: TypeAlias = dict[str, Any]
grid = dict  # The name by which configs of other packages make grids.
_Run = TypeVar('_Run')  # A `Run`, or what has a `run_id` and a `config`, too.

# The blocks that determine results; `execution` does not.
DECISIVE = ('task', 'model', 'training')
# Fields added after results were bundled -> their default. A field at its
# default is dropped before hashing, so old run ids stay valid.
_NEUTRAL = {
    ('training', 'matmul_precision'): 'float32',
    ('task', 'repeat_empty'): False,
    ('task', 'repeat_ood'): False,
    ('task', 'encoding'): None,
    ('task', 'shared_inputs'): False,
    ('model', 'outer', 'gradient'): 'unrolled',
}
# Fields that define the scientific question, at any scale.
_QUESTION = (
    'model.name',
    'task.task_support',
    'task.split',
    'task.meanings',
    'task.num_extra',
    'model.use_decoder_attention',
    'model.outer.support_loss',
)


@dataclasses.dataclass(frozen=True)
class Run:
  """One point of a sweep."""

  experiment: str  # name of the config, such as 'fig3b'
  preset: str
  config: dict[str, Any]  # nested: `task`, `model`, `training`, `execution`
  run_id: str  # readable slug plus the hash of `decisive`
  # Field -> value for the swept fields; {} if unknown.
  point: dict[str, Any] = dataclasses.field(default_factory=dict)

  @property
  def model(self) -> str:
    """The model's name in the sweep."""
    return self.point.get('model', self.config['model']['name'])

  @property
  def decisive(self) -> dict[str, Any]:
    """The blocks of `DECISIVE`."""
    return {name: self.config[name] for name in DECISIVE}


def hash_of(run_id: str) -> str:
  """Returns the config hash at the end of a run id.

  Runs of different experiments with the same hash are the same run.
  """
  return run_id.rpartition('-')[2]


def expand(
    config: ml_collections.ConfigDict,
    overrides: Mapping[str, Any] | None = None,
) -> list[Run]:
  """Returns the runs of a config, in the order of its sweep.

  `overrides` maps paths to the values that replace those of swept fields.

  Raises:
    UserError: if the sweep is malformed, or names an unknown field or model.
  """
  runs = [
      _make_run(config, dict(zip(axes, values)), overrides or {})
      for axes in check_sweep(config.sweep)
      for values in itertools.product(*axes.values())
  ]
  return list({run.run_id: run for run in runs}.values())


@functools.cache
def described_runs(experiment: str, preset: str) -> tuple[Run, ...]:
  """Returns the runs of an experiment's config; none without a config.

  With 'laptop', these include runs of its preset 'workstation', if any.
  """
  config = plugins.find_config(experiment)
  if config is None or not config.has(preset):
    return ()
  return tuple(expand(config.get_config(full_preset(experiment, preset))))


@functools.cache
def described_conditions(experiment: str, preset: str) -> frozenset[str]:
  """Returns the conditions of the runs of an experiment's config."""
  runs = described_runs(experiment, preset)
  return frozenset(condition(run.config) for run in runs)


def full_preset(experiment: str, preset: str) -> str:
  """Returns the preset that trains all runs which figures draw at a preset.

  It is the preset itself, but 'workstation' for 'laptop' if there is one.
  """
  config = plugins.find_config(experiment)
  larger = preset == 'laptop' and config and config.has('workstation')
  return 'workstation' if larger else preset


def config_flag(experiment: str, preset: str) -> str:
  """Returns the flag that trains all runs which figures draw at a preset."""
  config = plugins.find_config(experiment)
  if config is None:
    return f'--config={experiment}'
  return config.flag(full_preset(experiment, preset))


def check_sweep(sweep: Any) -> Sequence[Grid]:
  """Returns a sweep; raises UserError if it is malformed."""
  lists = (tuple, list)
  valid = isinstance(sweep, lists) and all(isinstance(g, dict) for g in sweep)
  items = [item for g in sweep for item in g.items()] if valid else ()
  if not items or not all(
      isinstance(field, str) and isinstance(values, lists) and values
      for field, values in items
  ):
    raise errors.UserError(
        f'sweep is {sweep!r}; it must be a tuple of grids such as'
        " {'task_support': ['random'], 'model': ['maml', 'anil']}, and"
        ' neither it nor its lists may be empty.'
    )
  return sweep


def select(
    runs: list[_Run],
    only: Sequence[str],
    flag: str = '--only',
    what: str = 'run',
) -> list[_Run]:
  """Returns the runs for which every 'field=value' of `only` holds.

  A field is 'run_id', a path such as 'model.name', or the end of one if
  unambiguous; 'model' and 'task' mean their names. A model's name in the sweep
  does, too, and wins over the same name of another model's function.
  'field=a,b' holds for either value. Errors name the flag that gave the
  conditions, and what it selects.

  Raises:
    UserError: for an unknown field, or if no run is left with a value.
  """
  for i, condition in enumerate(only):
    field, equals, value = condition.partition('=')
    if not equals:
      raise errors.UserError(f"{flag} is '{condition}'; write field=value.")
    # Not every run has every field.
    given = [_lookup(run, field, flag) for run in runs]
    if field == 'model':
      in_sweep = {names[-1] for names in given if names}
      given = [n[-1:] if {*n[:1]} & in_sweep else n for n in given]
    present = dict.fromkeys(v for values in given for v in values)
    # A value may hold commas itself: a tuple.
    wanted = [value] if value in present else value.split(',')
    wanted = [text.removesuffix('.0') for text in wanted]
    if not any(given):
      first: Any = runs[0]
      raise errors.UserError(
          f"{flag}: '{field}' is not a field of a {what};"
          f' {suggest(field, first.config)}'
      )
    for unknown in (value for value in wanted if value not in present):
      others = f' and {" and ".join(only[:i])}' if i else ''
      raise errors.UserError(
          f"{flag}: no {what} has {field} '{unknown}'{others}; choose one of"
          f' {", ".join(present)}.'
      )
    runs = [run for run, own in zip(runs, given) if {*wanted} & {*own}]
  return runs


def counterparts(run: Run, published: list[Run]) -> list[Run]:
  """Returns the published runs that are closest to a run of any preset.

  They agree in all fields of `_QUESTION`, such as model and task support, and
  differ in the fewest others; several in case of a tie.
  """
  # At the published scale, found without a comparison of all with all.
  if same := [other for other in published if other.run_id == run.run_id]:
    return same
  asked = _question(run)
  alike = [other for other in published if _question(other) == asked]
  distances = [len(_differences(run, other)) for other in alike]
  least = min(distances, default=0)
  return [other for other, d in zip(alike, distances) if d == least]


def deviations(run: Run, published: list[Run]) -> dict[str, Any]:
  """Returns the fields in which a run differs from the published scale.

  Returns:
    path -> {'value': ..., 'published': ...}, compared with the first of the
    run's `counterparts`; None for a field that does not exist. Empty if
    nothing is published.
  """
  if not published:
    return {}
  nearest = counterparts(run, published)
  if not nearest:
    ours = flatten(run.decisive)
    return {name: {'value': v, 'published': None} for name, v in ours}
  return _differences(run, nearest[0])


def flatten(tree: dict[str, Any], prefix: str = '') -> Iterator[tuple]:
  """Yields ('a.b.c', value) for every leaf of a nested dict."""
  for name, value in tree.items():
    if isinstance(value, dict):
      yield from flatten(value, f'{prefix}{name}.')
    else:
      yield f'{prefix}{name}', value


def _question(run: Run) -> tuple:
  fields = dict(flatten(run.decisive))
  return tuple(fields.get(path) for path in _QUESTION)


def _differences(run: Run, other: Run) -> dict[str, Any]:
  neutral = {'.'.join(path): value for path, value in _NEUTRAL.items()}
  ours, theirs = (neutral | dict(flatten(r.decisive)) for r in (run, other))
  return {
      name: {'value': ours.get(name), 'published': theirs.get(name)}
      for name in sorted(ours.keys() | theirs.keys())
      if ours.get(name) != theirs.get(name)
  }


def _make_run(
    config: ml_collections.ConfigDict,
    point: Mapping[str, Any],
    overrides: Mapping[str, Any],
) -> Run:
  blocks, name = config.to_dict(), point.get('model')
  errors.require_choice('sweep: model', name, list(blocks['models']))
  execution = blocks['execution']
  decisive = {
      'task': blocks['task'],
      'model': blocks['models'][name],
      'training': blocks['training'],
  }
  # It affects only speed, so the run id does not depend on it.
  chunk_size = decisive['model'].pop('task_chunk_size', None)
  if execution.get('task_chunk_size') is None:
    execution['task_chunk_size'] = chunk_size
  point = {_full_path(field, decisive): value for field, value in point.items()}
  for path, value in overrides.items():
    path = path.replace(f'models.{name}.', 'model.', 1)
    if path in point:
      point[path] = value
  for path, value in point.items():
    if path != 'model':
      *parents, leaf = path.split('.')
      functools.reduce(operator.getitem, parents, decisive)[leaf] = value
  decisive = json.loads(json.dumps(decisive))
  for (*parents, field), value in _NEUTRAL.items():
    block = functools.reduce(lambda tree, x: tree.get(x, {}), parents, decisive)
    if block.get(field) == value:
      block.pop(field, None)
  # The hash distinguishes lists.
  words = [str(v) for v in point.values() if not isinstance(v, (tuple, list))]
  return Run(
      experiment=str(config.experiment),
      preset=str(config.preset),
      config=decisive | {'execution': execution},
      run_id='-'.join([*words, hash_config(decisive)]),
      point=point,
  )


def _full_path(field: str, decisive: dict[str, Any]) -> str:
  """Returns the path of a swept field; UserError if unknown or ambiguous."""
  if field == 'model':
    return field
  paths = matches(field, dict(flatten(decisive)), 'sweep')
  if not paths:
    raise errors.UserError(
        f"sweep: there is no field '{field}'; {suggest(field, decisive)}"
    )
  return paths[0]


def suggest(path: str, tree: dict[str, Any]) -> str:
  """Returns a hint for a field that does not exist."""
  known = [name for name, _ in flatten(tree)]
  close = difflib.get_close_matches(path, known, n=3, cutoff=0.5)
  if close:
    return f'did you mean {" or ".join(close)}?'
  return f'choose one of {", ".join(known)}.'


def hash_config(resolved: Mapping[str, Any]) -> str:
  """Returns the hash of the blocks that determine a run's results."""
  decisive = {name: resolved[name] for name in DECISIVE}
  text = json.dumps(decisive, sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()[:10]


def condition(config: Mapping[str, Any]) -> str:
  """Returns the hash of the fields that affect results, except the seeds.

  Runs of one condition are pooled over their seeds.
  """
  training = dict(config['training'], seeds=None)
  return hash_config({**config, 'training': training})


def _lookup(run: Any, field: str, flag: str) -> list[str]:
  """Returns a field's value as text, 1.0 as '1'; [] if the run has none.

  For 'model', these are its name and then, if known, that in the sweep.
  """
  leaves = dict(flatten(run.config)) | {'run_id': run.run_id}
  in_sweep = getattr(run, 'point', {}).get(field) if field == 'model' else None
  field = f'{field}.name' if field in ('model', 'task') else field
  values = [leaves[path] for path in matches(field, leaves, flag)]
  values += [] if in_sweep is None else [in_sweep]
  return [str(value).removesuffix('.0') for value in values]


def matches(field: str, paths: Collection[str], where: str) -> list[str]:
  """Returns [path of a field]; [] if there is none; UserError if ambiguous."""
  if field in paths:
    return [field]
  matching = [path for path in paths if path.endswith(f'.{field}')]
  if len(matching) > 1:
    raise errors.UserError(
        f"{where}: '{field}' is ambiguous; write {' or '.join(matching)}."
    )
  return matching

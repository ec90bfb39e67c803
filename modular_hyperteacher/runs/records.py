"""The files of a run and of a bundle, as types that they are checked by."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

import numpy as np

from modular_hyperteacher import errors
from modular_hyperteacher import untrusted
from modular_hyperteacher.experiments import draws
from modular_hyperteacher.experiments import sweeps

# A result is that of the last step, or of the lowest validation loss.
KINDS = ('last', 'best_validation')
# NaN is None in JSON, and infinity text.
Number: TypeAlias = float | None | Literal['inf', '-inf']
# Seed -> the digest of its tasks; missing in files of earlier versions.
Drawn: TypeAlias = dict[str, draws.Digest]
# Split -> metric -> one number per seed.
Results: TypeAlias = dict[str, dict[str, list[Number]]]


def check_leaves(value: Any, field: str) -> None:
  """Checks that a config block holds numbers, text and lists of them."""
  if isinstance(value, dict):
    for name, entry in value.items():
      check_leaves(entry, f'{field}.{untrusted.shown(name)}')
  elif isinstance(value, (list, tuple)):
    for entry in value:
      if isinstance(entry, dict):
        raise untrusted.wrong(field, value, 'a list of numbers or text')
      check_leaves(entry, field)
  else:
    if isinstance(value, np.generic) and not isinstance(value, (float, str)):
      raise untrusted.wrong(field, value, "Python's number, as of its item()")
    untrusted.check(value, None | bool | int | float | str, field)


def _has(**kinds: Any) -> Callable[[Any, str], None]:
  """Returns the rule of a block that has fields of these types."""

  def rule(value: Any, field: str) -> None:
    for name, kind in kinds.items():
      untrusted.check(value.get(name), kind, f'{field}: {name}')

  return rule


_Block: TypeAlias = Annotated[dict[str, Any], check_leaves]


class Config(TypedDict):
  """config.json."""

  task: Annotated[_Block, _has(name=str)]
  model: Annotated[_Block, _has(name=str)]
  training: Annotated[_Block, _has(seeds=list[int], num_outer_steps=int)]
  execution: _Block


class Session(TypedDict, total=False):
  """One session of training; earlier versions recorded less."""

  started: str
  commit: str | None
  versions: dict[str, str]
  python: str
  platform: str
  device_kind: str
  processor: str
  num_devices: int
  num_cores: int
  num_processes: int
  first_step: int
  last_step: int
  wall_s: float
  cpu_s: float


class Provenance(TypedDict):
  """provenance.json of a run."""

  sessions: list[Session]
  drawn: NotRequired[Drawn]


def _check_summary(value: Any, field: str) -> None:
  for kind in KINDS:
    for split, metrics in value[kind].items():
      for metric, numbers in metrics.items():
        if len(numbers) != len(value['seeds']):
          raise untrusted.wrong(
              f'{field}: {kind}: {split}: {metric}',
              numbers,
              f'a list of {len(value["seeds"])}, one number per seed',
          )


class _Summary(TypedDict):
  run_id: untrusted.Name
  seeds: list[int]
  num_outer_steps: NotRequired[int]
  best_step: NotRequired[list[int]]
  diverged: NotRequired[list[int]]
  metrics_sha256: NotRequired[str]
  last: Results
  best_validation: Results


Summary: TypeAlias = Annotated[_Summary, _check_summary]


class BundledRun(Provenance):
  """A run in a bundle's provenance.json."""

  config: Config


class Bundle(TypedDict):
  """provenance.json of a bundle."""

  runs: dict[untrusted.Name, BundledRun]
  sha256: NotRequired[dict[str, str]]  # file -> of its content


class Parameters(TypedDict):
  """An entry of index.json, on the parameters of a bundled run."""

  kind: Literal['last', 'best_validation']
  seeds: list[int]
  sha256: str
  drawn: NotRequired[Drawn]


Index: TypeAlias = dict[untrusted.Name, Parameters]


def check_seeds(summary: _Summary, config: Config, field: str) -> None:
  """Raises UserError unless results are of all seeds of the config."""
  if summary['seeds'] != config['training']['seeds']:
    raise errors.UserError(
        f'{field}: summary.json has the seeds'
        f' {untrusted.shorten(summary["seeds"])}, but config.json has'
        f' {untrusted.shorten(config["training"]["seeds"])}.'
    )


def check_run(run_id: str, config: Config, field: str) -> None:
  """Raises UserError unless a run id ends in the hash of the config."""
  if sweeps.hash_config(config) != sweeps.hash_of(run_id):
    raise errors.UserError(
        f'{field}: the config of {untrusted.shorten(run_id)} was changed; it'
        ' does not match the hash at the end of the run id.'
    )

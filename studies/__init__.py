"""Studies beyond the paper, one folder each, on top of all other code."""

from collections.abc import Sequence
import importlib
from importlib import metadata
import sys

from modular_hyperteacher import errors
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.studies import study as contract

# In the order of the report.
BUILT_IN = (
    'amortised',
    'sparse_maml',
    'given_tasks',
    'meta_seq2seq',
    'in_context',
    'learning_dynamics',
    'outer_gradients',
)
# In other packages, each entry point names a `Study`.
ENTRY_POINTS = 'modular_hyperteacher.studies'


def load() -> tuple[contract.Study, ...]:
  """Returns the studies of this package, then those of others.

  A study of another package that cannot be loaded, or takes a name that is in
  use, is left out, with a warning on stderr.
  """
  modules = [importlib.import_module(f'{__name__}.{name}') for name in BUILT_IN]
  loaded = [module.STUDY for module in modules]
  for entry in metadata.entry_points(group=ENTRY_POINTS):
    try:
      study = entry.load()
      if not isinstance(study, contract.Study):
        raise TypeError(f'{entry.value} is no studies.study.Study')
      _check_names(study, loaded)
      loaded.append(study)
    except (Exception, SystemExit) as error:  # A module can raise anything.
      what = f'{type(error).__name__}: {error}'
      message = f'warning: study {entry.name} cannot be loaded ({what}).'
      print(errors.line(f'{message} It is left out.'), file=sys.stderr)
  return tuple(loaded)


def _check_names(
    study: contract.Study, others: Sequence[contract.Study]
) -> None:
  """Raises an error if another study, or the paper, has one of the names."""
  if not isinstance(study.configs, tuple):
    raise TypeError(f'configs is {study.configs!r}; it must be a tuple')
  # Imported here, with JAX: a study's record needs neither.
  components = plugins.resolve(f'{plugins.PACKAGE}.experiments.components')
  estimates = plugins.resolve(f'{plugins.PACKAGE}.learning.estimates')
  papers = {
      'configs': plugins.paper_configs(),
      'tasks': components.TASKS,
      'models': components.MODELS,
      'gradients': (estimates.UNROLLED,),
  }
  for field, used in papers.items():
    used = {*used, *(name for other in others for name in _names(other, field))}
    for name in sorted(used & _names(study, field)):
      raise ValueError(f"{field} has '{name}', a name that is in use")


def _names(study: contract.Study, field: str) -> set[str]:
  """Returns a study's names of a kind, those of its systems included."""
  return {
      *getattr(study, field),
      *(
          name
          for system in study.systems
          for name in getattr(system, field, ())
      ),
  }

"""Studies beyond the paper, one folder each, on top of all other code."""

import importlib
from importlib import metadata
import sys

from modular_hyperteacher import errors
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

  A study of another package that cannot be loaded is left out, with a warning
  on stderr.
  """
  modules = [importlib.import_module(f'{__name__}.{name}') for name in BUILT_IN]
  loaded = [module.STUDY for module in modules]
  for entry in metadata.entry_points(group=ENTRY_POINTS):
    try:
      study = entry.load()
      if not isinstance(study, contract.Study):
        raise TypeError(f'{entry.value} is no studies.study.Study')
      loaded.append(study)
    except (Exception, SystemExit) as error:  # A module can raise anything.
      what = f'{type(error).__name__}: {error}'
      message = f'warning: study {entry.name} cannot be loaded ({what}).'
      print(errors.line(f'{message} It is left out.'), file=sys.stderr)
  return tuple(loaded)

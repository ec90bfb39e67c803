"""Names of all published numbers, such as 'A6.maml.ood_accuracy'.

The column `id` of both files holds them: the table of Schug et al. (2024), or
'lake' and the section of Lake (2019); then row and column.
"""

import fnmatch
import functools

from modular_hyperteacher import errors
from modular_hyperteacher.published import schug2024
from modular_hyperteacher.studies.meta_seq2seq import published as lake2019


@functools.cache
def ids() -> tuple[str, ...]:
  """Returns the ids of all published numbers, in the order of the files."""
  return (*schug2024.table()['id'], *lake2019.table()['id'])


def match(pattern: str) -> list[str]:
  """Returns the ids that match 'A6.maml.*'; raises UserError if none do."""
  found = fnmatch.filter(ids(), pattern)
  if not found:
    raise errors.UserError(
        f"'{pattern}' matches no published value; see the column id of the"
        ' files in modular_hyperteacher/published/, and try A6.maml.*, for'
        ' example.'
    )
  return found

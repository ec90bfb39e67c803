"""Names of all published numbers, such as 'A6.maml.ood_accuracy'.

They are the column `id` of both papers' files: the table of Schug et al. (2024)
or 'lake' and the section of Lake (2019), then the row and the column.
"""

import fnmatch
import functools

from modular_hyperteacher import errors
from modular_hyperteacher.published import lake2019
from modular_hyperteacher.published import schug2024


@functools.cache
def ids() -> tuple[str, ...]:
  """Returns the ids of all published numbers, in the order of the files."""
  return (*schug2024.table()['id'], *lake2019.table()['id'])


def match(pattern: str) -> list[str]:
  """Returns the ids that a pattern such as 'A6.maml.*' stands for.

  Raises:
    UserError: if there are none.
  """
  found = fnmatch.filter(ids(), pattern)
  if not found:
    raise errors.UserError(
        f"'{pattern}' is no published value; see the column id in"
        ' modular_hyperteacher/published/, and try A6.maml.*, for example.'
    )
  return found

"""The one kind of error that is the user's to mend.

Everything that checks user input raises `ValueError` with a message that
names the field, what was given and what is allowed. `UserError` marks it at
the command line, where it is one line on stderr and exit code 2.
"""


class UserError(ValueError):
  """Wrong input: a field, a flag or a file on disk."""

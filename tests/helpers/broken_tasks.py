"""A user's module that cannot be imported; named in tests of bad input."""

raise RuntimeError('a mistake\non two lines')

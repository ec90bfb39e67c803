"""Draws a task of a grid world: walls, objects, the agent and its way.

  python -m figures.render --world=goals --seed=3
  python -m figures.render --world=preferences --seed=3 --format=html,png

Trains nothing and needs no results; a seed always gives the same picture.
"""

import pathlib
import sys

if not __package__:  # Run as a script: imports start at the repository root.
  sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

# pylint: disable=g-import-not-at-top,wrong-import-position
from absl import flags

from figures import cli
from figures import fig4a
from figures import images
from figures import style
from modular_hyperteacher import errors
from modular_hyperteacher import results

_FORMATS = ('html', *images.FORMATS)


def define_flags() -> None:
  """Defines what the command line takes."""
  flags.DEFINE_string('world', None, f'Of {", ".join(fig4a.WORLDS)}.')
  flags.DEFINE_integer('seed', fig4a.SEED, 'Of world and task.')
  flags.DEFINE_string('output', 'figures/output', 'Folder to write to.')
  flags.DEFINE_list('format', ['html'], f'Of {", ".join(_FORMATS)}.')


def main() -> None:
  """Draws one task and says where."""
  world, seed = flags.FLAGS['world'].value, flags.FLAGS['seed'].value
  _check('world', [world], tuple(fig4a.WORLDS))
  formats = flags.FLAGS['format'].value
  _check('format', formats, _FORMATS)
  if not 0 <= seed < 2**32:
    raise errors.UserError(
        f'--seed is {seed}; it must be at least 0 and below 2^32.'
    )
  figure, _ = fig4a.WORLDS[world](seed, f'A task of {world}, seed {seed}')
  folder, name = pathlib.Path(flags.FLAGS['output'].value), f'{world}_{seed}'
  obstacle = None
  try:
    folder.mkdir(parents=True, exist_ok=True)
    if 'html' in formats:
      page = figure.to_html(
          config=style.PAGE, include_plotlyjs=True, div_id=name
      )
      results.write_atomically(folder / f'{name}.html', page)
    static = [ending for ending in formats if ending != 'html']
    obstacle = images.export({name: figure}, static, folder)
  except OSError as error:
    raise errors.UserError(
        f'--output: cannot write to {folder} ({error.strerror}).'
    ) from error
  written = [e for e in formats if e == 'html' or not obstacle]
  for ending in written:
    print(folder / f'{name}.{ending}')
  if obstacle:
    print(obstacle)


def _check(flag, given, allowed):
  for name in given:
    if name not in allowed:
      raise errors.UserError(
          f"--{flag} is '{name or ''}'; choose from {', '.join(allowed)}."
      )


if __name__ == '__main__':
  define_flags()
  cli.run(main)

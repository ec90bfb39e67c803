"""Packs runs into small files, and unpacks them where training goes on.

  python -m launch.parts --pack=FOLDER     # writes FOLDER/001-of-003.part ...
  python -m launch.parts --unpack=FOLDER   # and reads them

For machines that are lent for minutes and return only small files. Packed are
the newest checkpoint and all tables of every run in --results, finished or not,
and the timings of launch.campaign. Unpacking writes nothing unless all parts
are there and undamaged. It keeps runs that are further in --results.
"""

import collections
import io
import pathlib
import re
import zipfile

from absl import flags

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher import untrusted
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.cli import script
from modular_hyperteacher.runs import checkpoints
from modular_hyperteacher.runs import run_folder

_PART_BYTES = 15 * 2**20
_TIMINGS = 'timings'
_SUMMARY = 'summary.json'
# The folder, the file and the checkpoint's step.
_FILE = re.compile(
    rf'({_TIMINGS}|[^/]+/[^/]+/[^/]+)/'
    r'(\w+\.json|metrics\.csv|checkpoints/(\d+)\.npz)'
)


def define_flags() -> None:
  """Defines the flags, without --results, when the command runs."""
  flags.DEFINE_string('pack', '', 'Folder to write parts to.')
  flags.DEFINE_string('unpack', '', 'Folder to read parts from.')


def pack(root: pathlib.Path, folder: pathlib.Path) -> list[pathlib.Path]:
  """Writes all runs below `root` as parts into `folder`; returns the parts.

  Raises:
    UserError: if there are no runs, or if the folder has parts already.
    StorageError: if a part cannot be written.
  """
  paths = sorted(root.glob(f'{_TIMINGS}/*.json'))
  for config in sorted(root.glob('*/*/*/config.json')):
    saved = run_folder.RunFolder(config.parent).checkpoints
    steps = checkpoints.Checkpoints(saved).steps()
    paths += [saved / f'{step}.npz' for step in steps[:1]]
    paths += [
        config.with_name('metrics.csv'),
        *config.parent.glob('[!.]*.json'),
    ]
  errors.require(paths, '--results', f"'{root}'", 'it has no runs to pack')
  files.create_folder(folder, '--pack')
  rule = 'it must not have parts already'
  errors.require(not any(folder.glob('*.part')), '--pack', f"'{folder}'", rule)
  buffer = io.BytesIO()
  with zipfile.ZipFile(buffer, 'w') as archive:  # Parameters do not compress.
    for path in paths:
      if (content := untrusted.read_bytes(path)) is not None:
        archive.writestr(path.relative_to(root).as_posix(), content)
  content = buffer.getvalue()
  names = _names(-(-len(content) // _PART_BYTES))
  for i, name in enumerate(names):
    part = content[i * _PART_BYTES : (i + 1) * _PART_BYTES]
    files.write_atomically(folder / name, part)
  return [folder / name for name in names]


def unpack(folder: pathlib.Path, root: pathlib.Path) -> dict[str, str]:
  """Writes the runs of the parts in `folder` below `root`.

  Returns:
    'experiment/preset/run id' -> what became of it.

  Raises:
    UserError: if a part is missing, damaged, or not of `pack`.
    StorageError: if a file cannot be written.
  """
  runs: dict[str, dict[str, bytes]] = collections.defaultdict(dict)
  steps: dict[str, list[int]] = collections.defaultdict(list)
  for name, content in _read(folder).items():
    match = _FILE.fullmatch(name)
    if match is None:
      raise errors.UserError(
          f"--unpack: '{folder}' holds {name!r}, which is no file of a run."
      )
    for word in name.split('/'):
      untrusted.check_name(word, f"--unpack: '{folder}' holds a file that")
    runs[match[1]][match[2]] = content
    steps[match[1]] += [int(match[3])] if match[3] else []
  done = {}
  for name, contents in runs.items():
    here = run_folder.RunFolder(root / name)
    saved = checkpoints.Checkpoints(here.checkpoints).steps()[:1]
    ends = _SUMMARY in contents
    if here.finished or (not ends and saved > steps[name]):
      done[name] = 'kept, as it is further here'
      continue
    # The summary comes last: with it, a run counts as finished.
    for rest in sorted(contents, key=lambda rest: rest == _SUMMARY):
      path = here.path / rest
      files.create_folder(path.parent, '--results')
      files.write_atomically(path, contents[rest])
    at = f'at step {max(steps[name], default=0)}'
    done[name] = 'finished' if ends else at
  done.pop(_TIMINGS, None)
  return done


def _names(number: int) -> list[str]:
  return [f'{i:03}-of-{number:03}.part' for i in range(1, number + 1)]


def _read(folder: pathlib.Path) -> dict[str, bytes]:
  """Returns name -> content of all files in the parts of a folder."""
  found = sorted(path.name for path in folder.glob('*.part'))
  last = re.fullmatch(r'\d+-of-(\d{3})\.part', found[-1]) if found else None
  names = _names(int(last[1])) if last else _names(1)
  rule = f'it must hold {", ".join(names)} and no other part'
  errors.require(found == names, '--unpack', f"'{folder}'", rule)
  whole = b''.join(untrusted.read_bytes(folder / n) or b'' for n in names)
  try:
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
      if sum(info.file_size for info in archive.infolist()) > len(whole):
        raise zipfile.BadZipFile('it is compressed')
      return {name: archive.read(name) for name in archive.namelist()}
  except (zipfile.BadZipFile, EOFError, RuntimeError) as error:
    raise errors.UserError(
        f"--unpack: the parts in '{folder}' are damaged: {error}."
    ) from error


def main() -> None:
  """Packs or unpacks, and prints what."""
  root = command_line.read_root()
  if bool(flags.FLAGS.pack) == bool(flags.FLAGS.unpack):
    raise errors.UserError('Give one of --pack=FOLDER and --unpack=FOLDER.')
  if flags.FLAGS.pack:
    for path in pack(root, files.locate(flags.FLAGS.pack, '--pack')):
      print(f'{path}: {path.stat().st_size / 2**20:.2f} MiB')
  else:
    folder = files.locate(flags.FLAGS.unpack, '--unpack')
    for name, what in unpack(folder, root).items():
      print(f'{name}: {what}')


if __name__ == '__main__':
  command_line.define_results_flag()
  define_flags()
  script.run(main)

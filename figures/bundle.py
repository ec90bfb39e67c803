"""Bundles finished runs into the compact files that the repository holds.

  python figures/bundle.py --results=results --experiment=fig3b --preset=laptop

Runs that are already bundled are kept, unless all their seeds were trained
again or the config no longer describes them. If several experiments share a
run, only the first one bundles it. If its config no longer describes the run,
the run moves to the bundle of another, with its parameters.

--parameters also bundles trained parameters, for `pretrained.load`. Parameters
that are already bundled stay with their runs; those of runs that were trained
again are removed, as they are out of date. To keep the repository small, select
runs and seeds with --only, --without and --num_seeds:

  python figures/bundle.py --experiment=fig4e --parameters --num_seeds=1 \\
      --only=task_support=random --without=model=nonlinear_hypernetwork
"""

from collections.abc import Collection, Mapping, Sequence
import pathlib
from typing import Any, TypeAlias

from absl import flags
import jax

from modular_hyperteacher import errors
from modular_hyperteacher import files
from modular_hyperteacher import pretrained
from modular_hyperteacher import untrusted
from modular_hyperteacher.cli import command_line
from modular_hyperteacher.cli import script
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import build
from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.figures.library import bundles
from modular_hyperteacher.pretrained import weights
from modular_hyperteacher.runs import run_folder

# The seeds, the parameters, and digests of the tasks.
_Trained: TypeAlias = tuple[tuple[int, ...], Any, dict[str, Any]]
# Limit for all bundles together, because every clone downloads them.
_MAX_PARAMETER_BYTES = 10_000_000


def define_flags() -> None:
  """Defines the flags when the command runs, not at import."""
  command_line.define_results_flag()
  flags.DEFINE_string(
      'experiment', None, 'Experiment to bundle, such as fig3b.'
  )
  flags.DEFINE_enum(
      'preset', 'laptop', list(presets.SCALES), 'The scale to bundle.'
  )
  flags.DEFINE_string(
      'output', '', "Folder of the bundles; default: the experiment's own."
  )
  flags.DEFINE_bool('parameters', False, 'Also bundle trained parameters.')
  flags.DEFINE_multi_string(
      'only', [], 'With --parameters: only of runs with field=value'
  )
  flags.DEFINE_multi_string(
      'without', [], 'With --parameters: not of runs with field=value'
  )
  flags.DEFINE_integer(
      'num_seeds',
      None,
      'With --parameters: of how many seeds; default: all.',
      1,
  )


def main() -> None:
  """Writes one bundle and prints its contents."""
  experiment = flags.FLAGS.experiment
  if experiment is None:
    raise errors.UserError('--experiment is missing; try --experiment=fig3b.')
  untrusted.check_name(experiment, '--experiment')
  for flag in ('only', 'without', 'num_seeds'):
    rule = 'it selects parameters: give --parameters, too'
    unused = flags.FLAGS[flag].present and not flags.FLAGS.parameters
    errors.require(not unused, f'--{flag}', flags.FLAGS[flag].value, rule)
  source = command_line.read_root() / experiment / flags.FLAGS.preset
  output = plugins.bundled_root(experiment)
  if flags.FLAGS.output:
    output = files.locate(flags.FLAGS.output, '--output')
  target = output / experiment / flags.FLAGS.preset
  if not (bundles.has_results(source) or bundles.has_results(target)):
    if not source.parent.exists():
      known = plugins.experiments()
      errors.require_choice('--experiment', experiment, known)
    raise errors.UserError(
        f'--results: there is no finished run in {source}; train one, or'
        ' choose another --results, --experiment or --preset.'
    )
  files.create_folder(output, '--output')
  new = bundles.read_whole(source)[0].runs
  others = _others(target)
  fates = _fates(new, bundles.read(target).runs, others)
  # All that can fail for a wrong flag comes before anything is written.
  added = [run for run in new.values() if run not in fates]
  trained = _read_parameters(source, added)
  for run, (what, _) in fates.items():
    print(f'{run.run_id}: {what}')
  for folder in others:
    moved = {run.run_id for run, (_, home) in fates.items() if home == folder}
    if moved:
      _copy(target, folder, moved)
  before = _rows(target)
  gone = {run.run_id for run in fates}
  finished = bundles.write_bundle(source, target, gone)
  # These runs were trained again: their parameters are out of date.
  changed = {run_id for run_id, *_ in before ^ _rows(target)}
  parameters = target / pretrained.FOLDER
  removed = weights.remove(parameters, changed | gone)
  if lost := [run_id for run_id in removed if run_id not in trained]:
    print(f'parameters removed from {parameters}: {", ".join(lost)}')
  _write_parameters(parameters, trained)
  written = [path for path in target.rglob('*') if path.is_file()]
  print(
      f'{target}: {len(finished.runs)} runs, {len(finished.values)} values,'
      f' {sum(path.stat().st_size for path in written) / 1e3:.0f} kB'
  )
  for run_id, run in finished.runs.items():
    seeds = ', '.join(str(seed) for seed in run.config['training']['seeds'])
    print(f'  {run_id}: seeds {seeds}')
  if flags.FLAGS.parameters:
    print(f'Parameters of all bundles: {_parameter_bytes() / 1e6:.1f} MB')


def _roots() -> tuple[pathlib.Path, ...]:
  if flags.FLAGS.output:
    return (files.locate(flags.FLAGS.output, '--output'),)
  return plugins.bundled_roots()


def _rows(target: pathlib.Path) -> set[tuple[Any, ...]]:
  """Returns the rows of a bundle's results, each with the run's id first."""
  return set(bundles.read(target).values.itertuples(index=False, name=None))


def _fates(
    new: Mapping[str, bundles.Run],
    bundled: Mapping[str, bundles.Run],
    others: Sequence[pathlib.Path],
) -> dict[bundles.Run, tuple[str, pathlib.Path | None]]:
  """Returns the runs that the bundle is not to hold -> what becomes of each.

  That is in words, and the bundle that the run moves to, if any. `new` holds
  runs whether or not the config describes them.
  """
  held = {
      key: folder
      for folder in others
      for run in bundles.read(folder).runs.values()
      for key in run.keys
  }
  added = [run for run in new.values() if not held.keys() >= {*run.keys}]
  again = {key for run in added for key in run.keys}
  fates: dict[bundles.Run, tuple[str, pathlib.Path | None]] = {}
  for run in {**bundled, **new}.values():
    if held.keys() >= {*run.keys}:
      folder = held[min(run.keys)]
      fates[run] = f'left to {folder}, which holds the same seeds', None
    elif run.run_id in new:
      continue
    elif again >= {*run.keys}:
      fates[run] = 'replaced, as its seeds were trained again', None
    elif not plugins.find_config(run.where[0]):
      continue  # A user's own config, which is not known here.
    elif not run.is_described(*run.where):
      homes = [f for f in others if run.is_described(f.parent.name, f.name)]
      home = homes[0] if homes else None
      what = f'moved to {home}'
      if home is None:
        what = "deleted, as no bundle's config describes it"
      fates[run] = what, home
  return fates


def _copy(
    target: pathlib.Path, folder: pathlib.Path, run_ids: Collection[str]
) -> None:
  kept = {*run_ids, *bundles.read(folder).runs}
  bundles.write_bundle(target, folder, bundles.read(target).runs.keys() - kept)
  parameters = pretrained.FOLDER
  weights.copy(target / parameters, folder / parameters, run_ids)


def _others(target: pathlib.Path) -> list[pathlib.Path]:
  pattern = f'*/{flags.FLAGS.preset}'
  folders = [f for root in _roots() for f in sorted(root.glob(pattern))]
  return [f for f in folders if f != target and bundles.has_results(f)]


def _read_parameters(
    source: pathlib.Path, added: Sequence[bundles.Run]
) -> dict[str, _Trained]:
  """Returns run id -> what was trained, of the selected runs."""
  if not flags.FLAGS.parameters:
    return {}
  if not added:
    raise errors.UserError(f'--parameters: {source} holds no run to bundle.')
  runs = [sweeps.Run(*run.where, run.config, run.run_id) for run in added]
  drawn_by_id = {run.run_id: run.drawn for run in added}
  left_out = [
      run
      for condition in flags.FLAGS.without
      for run in sweeps.select(runs, [condition], '--without')
  ]
  trained = {}
  for run in sweeps.select(runs, flags.FLAGS.only):
    if run not in left_out:
      built = build.build(run.config, num_devices=1)
      folder = run_folder.RunFolder(source / run.run_id)
      params = weights.restore(folder, built, 'last')
      first = jax.tree.map(lambda x: x[: flags.FLAGS.num_seeds], params)
      seeds = built.training.seeds[: flags.FLAGS.num_seeds]
      digests = drawn_by_id[run.run_id]
      drawn = {str(s): digests[str(s)] for s in seeds if str(s) in digests}
      trained[run.run_id] = seeds, first, drawn
  return trained


def _write_parameters(
    folder: pathlib.Path, trained: Mapping[str, _Trained]
) -> None:
  """Writes parameters, or none if all bundles would be too large."""
  for run_id, (seeds, params, drawn) in trained.items():
    weights.write(
        folder,
        run_id,
        kind='last',
        seeds=seeds,
        meta_params=params,
        drawn=drawn,
    )
  size = _parameter_bytes()
  if trained and size > _MAX_PARAMETER_BYTES:
    weights.remove(folder, trained)
    raise errors.UserError(
        f'--parameters: all bundles together would take {size / 1e6:.1f} MB; at'
        f' most {_MAX_PARAMETER_BYTES / 1e6:g} MB are allowed. Results were'
        ' bundled, but not the parameters of these runs; select fewer with'
        ' --only, --without or --num_seeds.'
    )


def _parameter_bytes() -> int:
  """Returns the size of the parameters in all bundles, in bytes."""
  pattern = f'*/*/{pretrained.FOLDER}/*'
  paths = [path for root in _roots() for path in root.glob(pattern)]
  return sum(path.stat().st_size for path in paths)


if __name__ == '__main__':
  define_flags()
  script.run(main)

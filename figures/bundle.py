"""Makes the small form of finished runs that the repository carries.

  python figures/bundle.py --results=results --experiment=fig3b --preset=laptop

Runs that are bundled already stay, unless they are trained anew or the config
does not describe them any more. A run that several experiments share is bundled
once, by the first.

With --parameters also the trained parameters, which `pretrained.load` finds;
--only, --without and --num_seeds choose which, as all must stay small:

  python figures/bundle.py --experiment=fig4e --parameters --num_seeds=1 \
      --only=task_support=random --without=model=nonlinear_hypernetwork
"""

import pathlib
import sys

if not __package__:  # Run as a script: imports start at the repository root.
  sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

# pylint: disable=g-import-not-at-top,wrong-import-position
from absl import flags
import jax

from configs import common
from figures import cli
from figures import data
from figures import reference
from figures import storage
from modular_hyperteacher import errors
from modular_hyperteacher import experiment
from modular_hyperteacher import parameters
from modular_hyperteacher import pretrained
from modular_hyperteacher import results
from modular_hyperteacher import sweeps

_RESULTS = flags.DEFINE_string('results', 'results', 'Folder of results.')
_EXPERIMENT = flags.DEFINE_string('experiment', None, 'Such as fig3b.')
_PRESET = flags.DEFINE_enum(
    'preset', 'laptop', list(common.PRESETS), 'The scale to bundle.'
)
_OUTPUT = flags.DEFINE_string(
    'output', str(data.BUNDLED), 'Folder of the bundles.'
)
_PARAMETERS = flags.DEFINE_bool(
    'parameters', False, 'Whether to bundle trained parameters, too.'
)
_ONLY = flags.DEFINE_multi_string(
    'only', [], 'Parameters only of runs with field=value; repeat to narrow.'
)
_WITHOUT = flags.DEFINE_multi_string(
    'without', [], 'Parameters of no run with field=value; repeatable.'
)
_NUM_SEEDS = flags.DEFINE_integer(
    'num_seeds', None, 'Parameters of so many seeds; all by default.', 1
)
# Of all parameters in the repository, which everybody has to fetch.
_MAX_PARAMETER_BYTES = 10_000_000


def main() -> None:
  """Writes one bundle and says what is in it."""
  if _EXPERIMENT.value is None:
    raise errors.UserError('--experiment is missing; try --experiment=fig3b.')
  place = pathlib.Path(_EXPERIMENT.value) / _PRESET.value
  source = pathlib.Path(_RESULTS.value) / place
  target = pathlib.Path(_OUTPUT.value) / place
  if not (storage.has_results(source) or storage.has_results(target)):
    raise errors.UserError(
        f'--results: there is no finished run in {source}; train one, or'
        ' choose another --results, --experiment or --preset.'
    )
  new = storage.read(source).runs
  dropped = _dropped(target, new)
  finished = storage.write_bundle(source, target, dropped)
  # They belong to what was trained, not to what is trained now.
  parameters.remove(target / pretrained.FOLDER, {*new, *dropped})
  if _PARAMETERS.value:
    added = {r: run for r, run in finished.runs.items() if r in new}
    _write_parameters(source, target, added)
  files = [path for path in target.rglob('*') if path.is_file()]
  print(
      f'{target}: {len(finished.runs)} runs, {len(finished.values)} values,'
      f' {sum(path.stat().st_size for path in files) / 1e3:.0f} kB'
  )
  for run_id, run in finished.runs.items():
    seeds = ', '.join(str(seed) for seed in run['config']['training']['seeds'])
    print(f'  {run_id}: seeds {seeds}')
  if _PARAMETERS.value:
    print(f'Parameters of all bundles: {_parameter_bytes() / 1e6:.1f} MB')


def _dropped(target, new):
  """Returns the ids of runs that a bundle is not to hold.

  Args:
    target: the bundle's folder.
    new: ids of the runs that were trained; they may be other than described.
  """
  described = reference.described_runs(_EXPERIMENT.value, _PRESET.value)
  described = {sweeps.digest(run.run_id) for run in described}
  folders = pathlib.Path(_OUTPUT.value).glob(f'*/{_PRESET.value}')
  elsewhere = {
      sweeps.digest(run_id): folder
      for folder in folders
      if folder != target and storage.has_results(folder)
      for run_id in storage.read(folder).runs
  }
  earlier = [r for r in storage.read(target).runs if r not in new]
  dropped = {r for r in earlier if sweeps.digest(r) not in described}
  for run_id in (*new, *earlier):
    if sweeps.digest(run_id) in elsewhere:
      folder = elsewhere[sweeps.digest(run_id)]
      print(f'{run_id}: left to {folder}, which holds the same run')
      dropped.add(run_id)
  return dropped


def _write_parameters(source, target, finished):
  """Writes the parameters that are asked for, or none if they are too many."""
  runs = [
      sweeps.Run(_EXPERIMENT.value, _PRESET.value, run['config'], run_id)
      for run_id, run in finished.items()
  ]
  left_out = [
      run
      for condition in _WITHOUT.value
      for run in sweeps.select(runs, [condition])
  ]
  for run in sweeps.select(runs, _ONLY.value):
    if run not in left_out:
      _write_run(source, target / pretrained.FOLDER, run)
  size = _parameter_bytes()
  if size > _MAX_PARAMETER_BYTES:
    parameters.remove(target / pretrained.FOLDER, finished)
    raise errors.UserError(
        f'--parameters: all bundles together would hold {size / 1e6:.1f} MB, of'
        f' at most {_MAX_PARAMETER_BYTES / 1e6:g}; none of these are bundled.'
        ' Choose fewer, with --only, --without or --num_seeds.'
    )


def _write_run(source, folder, run):
  """Writes the parameters of one run's first seeds after the last step."""
  built = experiment.build(run.config, num_devices=1)
  trained = results.RunFolder(source / run.run_id)
  meta_params = parameters.restore(trained, built, 'last')
  parameters.write(
      folder,
      run.run_id,
      kind='last',
      seeds=built.training.seeds[: _NUM_SEEDS.value],
      meta_params=jax.tree.map(lambda x: x[: _NUM_SEEDS.value], meta_params),
  )


def _parameter_bytes():
  """Returns the size of the parameters in all bundles, in bytes."""
  files = pathlib.Path(_OUTPUT.value).glob(f'*/*/{pretrained.FOLDER}/*')
  return sum(path.stat().st_size for path in files)


if __name__ == '__main__':
  cli.run(main)

"""Makes the small form of finished runs that the repository carries.

  python figures/bundle.py --results=results --experiment=fig3b --preset=laptop

With --parameters also the trained parameters, which `pretrained.load` finds;
--only, --without and --num_seeds choose which, as all must stay small:

  python figures/bundle.py --experiment=fig4e --parameters --num_seeds=1 \
      --only=task_support=random --without=model=nonlinear_hypernetwork
"""

import pathlib
import shutil
import sys

if not __package__:  # Run as a script: imports start at the repository root.
  sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

# pylint: disable=g-import-not-at-top,wrong-import-position
from absl import flags
import jax

from configs import common
from figures import cli
from figures import data
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
  if not any(source.glob('*/summary.json')):
    raise errors.UserError(
        f'--results: there is no finished run in {source}; train one, or'
        ' choose another --results, --experiment or --preset.'
    )
  target = pathlib.Path(_OUTPUT.value) / place
  finished = storage.write_bundle(source, target)
  # Those of an earlier bundle belong to its runs.
  shutil.rmtree(target / pretrained.FOLDER, ignore_errors=True)
  if _PARAMETERS.value:
    _write_parameters(source, target, finished.runs)
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
    shutil.rmtree(target / pretrained.FOLDER)
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

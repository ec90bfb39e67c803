"""Makes the small form of finished runs that the repository carries.

  python figures/bundle.py --results=results --experiment=fig3b --preset=laptop
"""

import pathlib
import sys

if not __package__:  # Run as a script: imports start at the repository root.
  sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])

# pylint: disable=g-import-not-at-top,wrong-import-position
from absl import flags

from configs import common
from figures import cli
from figures import data
from figures import storage
from modular_hyperteacher import errors

_RESULTS = flags.DEFINE_string('results', 'results', 'Folder of results.')
_EXPERIMENT = flags.DEFINE_string('experiment', None, 'Such as fig3b.')
_PRESET = flags.DEFINE_enum(
    'preset', 'laptop', list(common.PRESETS), 'The scale to bundle.'
)
_OUTPUT = flags.DEFINE_string(
    'output', str(data.BUNDLED), 'Folder of the bundles.'
)


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
  print(
      f'{target}: {len(finished.runs)} runs, {len(finished.values)} values,'
      f' {sum(f.stat().st_size for f in target.iterdir()) / 1e3:.0f} kB'
  )
  for run_id, run in finished.runs.items():
    seeds = ', '.join(str(seed) for seed in run['config']['training']['seeds'])
    print(f'  {run_id}: seeds {seeds}')


if __name__ == '__main__':
  cli.run(main)

"""Published numbers of Lake (2019)."""

from collections.abc import Mapping
import functools
import pathlib
from typing import Any

import pandas as pd

_PATH = pathlib.Path(__file__).parent / 'published.csv'
_METRIC = 'exact-match accuracy'
# (task.split, task.meanings) -> the experiment's name in the file.
_EXPERIMENTS = {
    (None, None): '4.2 mutual exclusivity',
    ('add_jump', 'permuted'): '4.3 SCAN add jump (permutation meta-training)',
    ('add_jump', 'fixed'): '4.3 SCAN add jump (standard training)',
    (
        'add_jump',
        'extended',
    ): '4.4 SCAN add jump (augmentation meta-training, 20 extra primitives)',
    (
        'add_jump',
        'aligned',
    ): '4.4 SCAN add jump (augmented standard training, 20 extra primitives)',
    ('around_right', 'extended'): '4.5 SCAN around right',
    ('around_right', 'fixed'): '4.5 SCAN around right',
    ('length', 'extended'): '4.6 SCAN length',
    ('length', 'fixed'): '4.6 SCAN length',
}


@functools.cache
def table() -> pd.DataFrame:
  """Returns all published values."""
  return pd.read_csv(_PATH)


def accuracy(
    config: Mapping[str, Any], split: str
) -> tuple[float, float] | None:
  """Returns a published test accuracy: mean, standard deviation over 5 runs.

  Both are fractions; the latter is NaN if none is printed. None if nothing is
  published, as for other splits than 'ood'. The config's scale is ignored.
  """
  task, model = config['task'], config['model']
  if (
      split != 'ood'
      or task['name'] not in ('mutual_exclusivity', 'scan')
      or model['name'] not in ('seq2seq', 'meta_seq2seq')
  ):
    return None
  experiment = _EXPERIMENTS.get((task.get('split'), task.get('meanings')))
  # 'around_right' has two published conditions.
  condition = f'{task.get("num_extra")} extra directions'
  is_directions = task.get('split') == 'around_right' and task['num_extra']
  frame = table()
  rows = frame[
      (frame['experiment'] == experiment)
      & (frame['model'] == _model_name(model))
      & (frame['metric'] == _METRIC)
      & frame['condition'].str.startswith(condition if is_directions else '')
  ]
  if len(rows) != 1:
    return None
  mean, deviation = (float(rows[column].iloc[0]) for column in ('mean', 'std'))
  return mean / 100, deviation / 100


def _model_name(model: Mapping[str, Any]) -> str:
  """Returns the file's name of a model, given its config block."""
  if model['name'] == 'seq2seq':
    return 'standard seq2seq'
  ablations = [
      (model['outer']['support_loss'], ' without support loss'),
      (model['use_decoder_attention'], ' without decoder attention'),
  ]
  return 'meta seq2seq' + ''.join(text for used, text in ablations if not used)

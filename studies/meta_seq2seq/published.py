"""Published numbers of Lake (2019)."""

from collections.abc import Mapping
import functools
import pathlib
from typing import Any

import pandas as pd

_PATH = pathlib.Path(__file__).parent / 'published.csv'
# (task.split, task.meanings) -> the condition in the file's ids.
_CONDITIONS = {
    (None, None): '4.2',
    ('add_jump', 'permuted'): '4.3.permuted',
    ('add_jump', 'fixed'): '4.3.fixed',
    ('add_jump', 'extended'): '4.4.extended',
    ('add_jump', 'aligned'): '4.4.aligned',
    ('around_right', 'extended'): '4.5.{num_extra}_directions',
    ('around_right', 'fixed'): '4.5',
    ('length', 'extended'): '4.6',
    ('length', 'fixed'): '4.6',
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
  key = task.get('split'), task.get('meanings')
  condition = _CONDITIONS.get(key, '').format(**task)
  rows = table()[table()['id'] == f'lake.{condition}.{_network(model)}']
  if rows.empty:
    return None
  mean, deviation = rows[['mean', 'std']].iloc[0].astype(float)
  return mean / 100, deviation / 100


def _network(model: Mapping[str, Any]) -> str:
  """Returns what ids call a model, given its config block."""
  if model['name'] == 'seq2seq':
    return 'seq2seq'
  parts = {
      'no_support_loss': model['outer']['support_loss'],
      'no_decoder_attention': model['use_decoder_attention'],
  }
  lesions = [name for name, is_used in parts.items() if not is_used]
  return '.'.join(lesions) or 'meta_seq2seq'

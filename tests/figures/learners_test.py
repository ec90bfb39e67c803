"""The page's picture and table of all learners."""

import pathlib
import re

import numpy as np
import pytest

from modular_hyperteacher.figures.extensions import inference_cost
from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import reference
from tests.helpers import made_up
from tests.helpers import results
from tests.helpers import slow

# Experiment, shape of what is timed.
_GIVEN = ('given_or_inferred', (3, 1, 8))
_IN_CONTEXT = ('in_context_hyperteacher', (3, 1, 8))


# Column of the page's table -> the marks that show it.
_SHOWN = {
    'seen': 'seen',
    'new': 'new',
    'module held out': 'new held out',
    'R² of decoding': 'decoding',
    'ms per task': 'cost laptop',
}


def test_the_picture_and_the_table_show_the_same(
    tmp_path: pathlib.Path,
) -> None:
  library = data.Library(tmp_path)
  figure, numbers = learners.draw(library)
  table = learners.table(library)
  drawn = {t.name: t for t in made_up.traces(figure) if len(t.x) == len(table)}
  assert drawn.keys() - _SHOWN.values() == {
      'seen held out',
      'decoding held out',
  }
  for column, name in _SHOWN.items():
    written = [float(text.split()[0]) for text in table[column]]
    np.testing.assert_allclose(drawn[name].x, written, atol=5e-4)
  assert list(numbers['learner']) == list(table['learner'])
  assert {'BOIL', 'MAML', 'MAML, 218 wide', 'MLP'} <= set(table['learner'])


@pytest.mark.parametrize('task_support', ['random', 'non_compositional'])
@pytest.mark.parametrize(
    'learner', learners.known(), ids=lambda learner: learner.name
)
def test_the_fields_of_a_learner_tell_it_from_others(
    learner: learners.Learner, task_support: str
) -> None:
  """Except for its width: the first one is the usual."""
  fields = {**learner.fields, learners.SUPPORT: task_support}
  matching = [
      described
      for described in reference.described_fields(learner.experiment, 'laptop')
      if all(described.get(path) == value for path, value in fields.items())
  ]
  widths = [described.get('model.hidden_dim') for described in matching]
  config = learner.run('laptop', task_support).config
  assert config['model'].get('hidden_dim') == widths[0]
  assert len(set(widths)) == len(widths) <= 2


def test_without_runs_it_says_so(tmp_path: pathlib.Path) -> None:
  library = results.library(tmp_path)
  figure, _ = learners.draw(library)
  assert re.search('no finished run', made_up.texts(figure))
  assert set(learners.table(library)['seen']) == {'not trained yet'}


@pytest.mark.parametrize(
    'experiment, shape',
    slow.mark([_GIVEN, _IN_CONTEXT], [_IN_CONTEXT]),
)
def test_what_is_timed_ends_in_a_prediction_or_in_fast_parameters(
    experiment: str, shape: tuple[int, ...]
) -> None:
  """A network that is given the task has nothing to infer, but predicts."""
  run, *_ = reference.described_runs(experiment, 'smoke')
  (output,) = [inference_cost.make_infer(run.config, 3)()]
  assert output.shape == shape

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
from tests.helpers import slow

# Experiment, shape of what is timed.
_GIVEN = ('given_or_inferred', (3, 1, 8))
_IN_CONTEXT = ('in_context_hyperteacher', (3, 1, 8))


def test_the_picture_and_the_table_show_the_same(
    tmp_path: pathlib.Path,
) -> None:
  library = data.Library(tmp_path)
  figure, numbers = learners.draw(library)
  table = learners.table(library)
  drawn = [t for t in made_up.traces(figure) if len(t.x) == len(table)]
  columns = ['seen', 'new', 'module held out', 'R² of decoding', 'ms per task']
  assert len(drawn) == len(columns)
  for trace, column in zip(drawn, columns):
    written = [float(text.split()[0]) for text in table[column]]
    np.testing.assert_allclose(trace.x, written, atol=5e-4)
  assert list(numbers['learner']) == list(table['learner'])
  assert {'BOIL', 'MAML', 'MLP'} <= set(table['learner'])


def test_without_runs_it_says_so(tmp_path: pathlib.Path) -> None:
  library = data.Library(tmp_path, tmp_path / 'nothing')
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

"""Pictures of the grid worlds, read back from the figures."""

import pathlib
from typing import Any

import numpy as np

from modular_hyperteacher.figures.paper import fig4a
from modular_hyperteacher.figures.plotting import pictures
from modular_hyperteacher.studies.in_context import sraven
from modular_hyperteacher.studies.in_context.figures import fuzzy_logic_picture
from modular_hyperteacher.studies.in_context.figures import sraven_picture
from tests.helpers import commands
from tests.helpers import forks
from tests.helpers import made_up
from tests.studies.in_context import sraven_test


def _panels(figure: Any) -> list[Any]:
  """Returns, panel by panel, name -> [(column, row)], and which are walls."""
  panels = {}
  for trace in made_up.traces(figure):
    points, walls = panels.setdefault(trace.xaxis or 'x', ({}, []))
    if trace.type == 'heatmap':
      walls.append(np.asarray(trace.z) > 0)
    elif trace.name:
      points[trace.name] = list(zip(trace.x, trace.y))
  return [(points, walls[0]) for points, walls in panels.values()]


def _is_way(path: Any, walls: np.ndarray) -> bool:
  steps = np.abs(np.diff(path, axis=0)).sum(1)
  return (steps <= 1).all() and not any(walls[y, x] for x, y in path)


def test_goals() -> None:
  """The way leads from the agent to the goal, past all of five objects."""
  figure, table = fig4a.draw_goals(3)
  panels = _panels(figure)
  assert len(panels) == 2
  for i, (points, walls) in enumerate(panels, start=1):
    path = points['optimal path']
    assert walls.shape == (11, 11)
    assert path[0] == points['agent'][0] and path[-1] == points['goal'][0]
    assert _is_way(path, walls)
    actions = table[f'demonstration {i}'].dropna()
    assert len(actions) == len(path) >= 12
    assert set(actions[:-1]) <= {0, 1, 2, 3} and actions.iloc[-1] in (4, 5)
    assert f'demonstration {i}: {len(path)} actions' in made_up.texts(figure)
    cells = [xy for n, at in points.items() if 'object' in n for xy in at]
    assert 4 <= len(cells) <= 5
    assert not any(walls[y, x] for x, y in cells)


def test_preferences() -> None:
  figure, table = fig4a.draw_preferences(3)
  for points, walls in _panels(figure):
    path = points['optimal path']
    assert walls.shape == (7, 7)
    assert path[0] == points['agent'][0]
    assert _is_way(path, walls)
    assert sum(len(at) for n, at in points.items() if 'colour' in n) == 4
  assert len(table) == 8
  marked = [
      trace
      for trace in made_up.traces(figure)
      if trace.type == 'scatter' and trace.marker.coloraxis
  ]
  assert len(marked) == 2 * 5
  for trace in marked:
    assert len(trace.x) == 19
  # Where the agent is, the largest of the marks is what the title says.
  points, _ = _panels(figure)[0]
  x, y = points['agent'][0]
  values = [
      value
      for trace in marked[:5]
      for value, column, row in zip(trace.marker.color, trace.x, trace.y)
      if (round(column), round(row)) == (x, y)
  ]
  assert len(values) == 5
  assert f'worth {max(values):.2f}' in made_up.texts(figure)


def test_seeds_differ_and_are_reproducible() -> None:
  drawn = [fig4a.draw_goals(seed)[1] for seed in (3, 3, 4)]
  assert drawn[0].equals(drawn[1]) and not drawn[0].equals(drawn[2])


def test_no_two_types_look_alike() -> None:
  assert len(set(pictures.COLOURS)) == len(set(pictures.SYMBOLS)) == 8


_REFUSED = {
    '--world=gaols': "--world is 'gaols'; choose one of preferences, goals",
    '--world=hyperteacher --preset=desk': (
        "--preset is 'desk'; choose one of smoke, laptop, paper"
    ),
    '--format=gif': "--format is 'gif'; choose one of html, svg",
    '--seed=-1': '--seed is -1; it must be at least 0',
    '--split=nope': '--split is nope; it needs --run',
    '--preset=paper': '--preset is paper; it needs --world=hyperteacher alone',
    '--run=fig3b/laptop --preset=paper': '--preset is paper; it needs',
    '--run=fig3b/laptop --task_support=random': (
        '--task_support is random; it needs --run and --model'
    ),
}


def test_wrong_input_is_one_line(tmp_path: pathlib.Path) -> None:
  output = tmp_path / 'new'
  forks.assert_refused(
      tmp_path,
      [
          ['--world=goals', *arguments.split(), f'--output={output}']
          for arguments in _REFUSED
      ],
      list(_REFUSED.values()),
      'figures.render',
  )
  assert not output.exists()


def test_writes_a_page(tmp_path: pathlib.Path) -> None:
  run = commands.python(
      *('-m', 'figures.render', '--world=preferences', '--seed=5'),
      '--output=~/pictures',
      HOME=str(tmp_path),
  )
  assert run.returncode == 0, run.stderr
  page = (tmp_path / 'pictures' / 'preferences_5.html').read_text()
  assert 'A task of preferences, seed 5' in page
  assert 'src="http' not in page


def test_a_function_of_fuzzy_logic_is_the_maximum_of_its_terms() -> None:
  figure, table = fuzzy_logic_picture.draw(3)
  first, second = (table[name] for name in table.columns[2:4])
  assert table.columns[2].count('x') == 4 and not first.equals(second)
  np.testing.assert_array_equal(table['maximum'], np.maximum(first, second))
  assert len(made_up.traces(figure)) == 3
  for name, values in table.iloc[:, 2:4].items():
    literals = [
        1 - value if part.startswith('not ') else value
        for part, value in zip(
            str(name).split(' and '), (table['x1'], table['x2'], 0.6, 0.6)
        )
    ]
    np.testing.assert_allclose(
        values, np.minimum.reduce(np.broadcast_arrays(*literals)), atol=1e-6
    )


def test_an_instance_of_sraven_follows_its_rules() -> None:
  """And what is shown has the same features in each panel, but not in order."""
  figure, table = sraven_picture.draw(3)
  for (_, rule), rows in table.groupby(['feature', 'rule']):
    values = rows['in_order'].to_numpy().reshape(3, 3)
    assert sraven_test.follows(sraven.RULES.index(rule), values, 8)
  panels = table.groupby(['row', 'column'])[['in_order', 'shown']]
  assert len(panels) == 9
  for _, panel in panels:
    assert sorted(panel['in_order']) == sorted(panel['shown'])
  assert not table['in_order'].equals(table['shown'])
  _, shown = made_up.traces(figure)
  # The answer is not drawn; panels are apart.
  assert np.isnan(shown.z).sum() == 2 + 3 * 3
  assert np.isnan(shown.z[2, 6:]).all() and (shown.text[2, 6:8] == '?').all()

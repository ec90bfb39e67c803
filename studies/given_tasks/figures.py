"""Networks that are given the task: do they recompose modules at scale?

After Redhardt et al., "Scaling can lead to compositional generalization"
(2025). R2 is that of all tasks of a split together, 1 - loss / variance; tables
also have the published mean over tasks and outputs (`unit_r2`), in which an
output that hardly varies weighs heavily.
"""

from collections.abc import Iterable
import itertools
from typing import Any

import numpy as np
import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.library import reference
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import points
from modular_hyperteacher.figures.plotting import style
from modular_hyperteacher.studies.given_tasks import listed_splits
from modular_hyperteacher.studies.given_tasks.configs import blocks as multitask
from modular_hyperteacher.tasks.supports import combinations

EXPERIMENT = 'scaling'
GIVEN = 'given_or_inferred'
R2 = 'r2'
DECODING = 'decoding_r2'
CELL = (
    'model.name',
    'task.task_support',
    'task.num_modules',
    'task.max_active',
    'task.fraction_ood',
    'task.encoding',
    'model.hidden_dim',
    'model.num_hidden',
)
GIVEN_CELL = ('model.name', 'task.task_support', 'task.encoding')
CODES = {
    'identity': '#0072B2',
    'orthogonal': '#56B4E9',
    'tokens': '#E69F00',
    'invertible_nn': '#009E73',
    'interval_shuffle': '#CC79A7',
    'fewshot': '#D55E00',
}
_SIZES = ('task.num_modules', 'task.max_active')
_COLOUR = CODES['identity']
_DEPTH_COLOURS = ('#0072B2', '#D55E00', '#009E73', '#E69F00')
_MEASURES = {
    f'{split}_{name}': (split, metric)
    for name, metric in (
        ('r2', R2),
        ('unit_r2', 'unit_r2'),
        ('decoding_code', f'{DECODING}_code'),
        ('decoding_best', DECODING),
        ('decoding_last', f'{DECODING}_last'),
    )
    for split in ('test', 'ood')
}
_NOT_DECODABLE = (
    'Without non-compositional support: no decoder can learn a module that is'
    ' never seen.'
)
_MODELS = {
    'anil': 'ANIL',
    'maml': 'MAML',
    'linear_hypernetwork': 'linear',
    'nonlinear_hypernetwork': 'non-<br>linear',
    multitask.NAME: 'MLP,<br>given',
}


def with_r2(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns the table with rows of R2, 1 - loss / variance, added."""
  if frame.empty:
    return frame
  point = ['run_id', 'seed', 'kind', 'split']
  loss = frame[frame['metric'] == 'loss']
  variance = frame[frame['metric'] == 'variance']
  both = loss.merge(variance[[*point, 'value']], on=point, suffixes=('', '_of'))
  ratio = both['value'] / both.pop('value_of')
  return pd.concat(
      [frame, both.assign(metric=R2, value=1 - ratio)], ignore_index=True
  ).astype({'metric': 'category'})


def read_values(library: data.Library, experiment: str) -> pd.DataFrame:
  """Returns an experiment's values with R2."""
  return with_r2(library.values(experiment))


def usual(grid: cells.Cells) -> cells.Cell:
  """Returns the cell around which the sweeps vary one or two fields."""
  fields = reference.described_fields(EXPERIMENT, grid.preset)[0]
  return {column: fields[column] for column in CELL}


def count_masks(cell: cells.Cell) -> int:
  """Returns the number of all combinations of a cell."""
  return combinations.num_masks(*(int(cell[name]) for name in _SIZES))


def count_training(cell: cells.Cell) -> int:
  """Returns the number of training combinations of a random split."""
  num_modules, max_active = (int(cell[name]) for name in _SIZES)
  fraction_ood = cell['task.fraction_ood']
  return listed_splits.count('random', num_modules, max_active, fraction_ood)[0]


def vary(grid: cells.Cells, *columns: str) -> list[cells.Cell]:
  """Returns the cells that differ from the usual one in these columns only."""
  rest = {k: v for k, v in usual(grid).items() if k not in columns}
  return [
      cell
      for cell in grid.cells
      if all(cell[column] == value for column, value in rest.items())
  ]


def by_size(given: Iterable[cells.Cell]) -> list[list[cells.Cell]]:
  """Returns the cells of every (M, K), from fewest training masks to most."""
  key = lambda cell: tuple(cell[name] for name in _SIZES)
  return [
      sorted(group, key=count_training)
      for _, group in itertools.groupby(sorted(given, key=key), key)
  ]


def of_mlp(grid: cells.Cells, cell: cells.Cell) -> cells.Cell:
  """Returns the cell of the usual MLP on the task of another cell."""
  task = {k: v for k, v in cell.items() if k.startswith('task.')}
  return usual(grid) | task


def decodable(grid: cells.Cells) -> list[cells.Cell]:
  """Returns the MLP's cells whose modules all occur in what decoders see.

  No decoder can learn a module that is absent from all seen combinations.
  """
  return [
      cell
      for cell in grid.cells
      if cell['model.name'] == multitask.NAME
      and cell['task.task_support'] != 'non_compositional'
  ]


_SCALING: dict[str, Any] = {
    'experiment': EXPERIMENT,
    'cell': CELL,
    'measures': _MEASURES,
    'read': read_values,
}


def select(frame: pd.DataFrame) -> cells.Cells:
  """Returns the cells of the scaling experiment, given runs with R2."""
  return cells.select(EXPERIMENT, frame, CELL)


def _by_support(grid: cells.Cells) -> dict[str, list[bars.Bar]]:
  """Returns bars by support: a panel per share that is held out."""
  shown = vary(grid, 'task.task_support', 'task.fraction_ood')
  panels = {}
  for fraction in dict.fromkeys(c['task.fraction_ood'] for c in shown):
    drawn = [c for c in shown if c['task.fraction_ood'] == fraction]
    if len(drawn) > 1:
      panels[f'{fraction:.0%} held out'] = [
          _bar(
              grid,
              cell,
              cell['task.task_support'].replace('_', '-<br>'),
              _COLOUR,
              R2,
          )
          for cell in drawn
      ]
  return panels


def _by_data(grid: cells.Cells) -> dict[str, list[lines.Line]]:
  """Returns R2 by the number of training combinations, a panel per (M, K)."""
  return {
      _size_name(group): [
          lines.Line(
              name=style.SPLIT_NAMES[split],
              colour=_COLOUR if split == 'ood' else style.MUTED,
              seeds=_by_number(grid, group, split),
              dash=style.DASHES['train'] if split == 'test' else 'solid',
          )
          for split in ('test', 'ood')
      ]
      for group in by_size(vary(grid, *_SIZES, 'task.fraction_ood'))
  }


def _transformers(grid: cells.Cells) -> dict[str, list[lines.Line]]:
  """Returns R2 of transformers and MLPs by the number of combinations."""
  panels = {}
  for group in by_size(grid.find(name=multitask.TRANSFORMER)):
    panels[_size_name(group)] = [
        lines.Line(
            name=name,
            colour=colour,
            seeds=_by_number(grid, of_model, split),
            dash=style.DASHES['train'] if split == 'test' else 'solid',
            dash_name=style.SPLIT_NAMES[split],
        )
        for name, colour, of_model in (
            ('transformer', CODES['fewshot'], group),
            ('MLP', _COLOUR, [of_mlp(grid, cell) for cell in group]),
        )
        for split in ('ood', 'test')
    ]
  return panels


def _over_numbers(title: str, panels: Any) -> described.Figure:
  """Returns panels over the number of training combinations."""
  return described.line_grid(
      title=title,
      panels=panels,
      notes=('Code: the latent itself. Random splits.',),
      ticks=[step * 10**power for power in range(7) for step in (1, 2, 5)],
      x_title='training combinations',
      y_title='R²',
      x_type='log',
      **_SCALING,
  )


def _size_name(group: list[cells.Cell]) -> str:
  num_modules, max_active = (group[0][name] for name in _SIZES)
  return f'M = {num_modules}, K = {max_active}'


def _by_number(
    grid: cells.Cells, group: list[cells.Cell], split: str
) -> pd.DataFrame:
  """Returns R2 by the number of training combinations."""
  return _table(grid, {count_training(cell): cell for cell in group}, split)


def _networks(grid: cells.Cells) -> list[cells.Cell]:
  """Returns the networks of all widths and depths, for all codes."""
  return vary(grid, 'task.encoding', 'model.hidden_dim', 'model.num_hidden')


def _by_width(grid: cells.Cells) -> dict[str, list[lines.Line]]:
  """Returns R2 by width, a line per depth and a panel per code."""
  shown = _networks(grid)
  depths = sorted({cell['model.num_hidden'] for cell in shown})
  panels = {}
  for code in CODES:
    drawn = [c for c in shown if c['task.encoding'] == code]
    panels[code.replace('_', ' ')] = [
        lines.Line(
            name=f'{depth} hidden layers',
            colour=colour,
            seeds=_table(
                grid,
                {
                    c['model.hidden_dim']: c
                    for c in drawn
                    if c['model.num_hidden'] == depth
                },
                'ood',
            ),
        )
        for depth, colour in zip(depths, _DEPTH_COLOURS)
    ]
  return panels


def _decoding(grid: cells.Cells) -> dict[str, list[lines.Line]]:
  """Returns decoding by layer: of all codes, and with rare modules."""
  depth = max(c['model.num_hidden'] for c in vary(grid, 'model.num_hidden'))
  by_code = [
      (cell['task.encoding'].replace('_', ' '), cell)
      for cell in vary(grid, 'task.encoding', 'model.num_hidden')
      if cell['model.num_hidden'] == depth
  ]
  names = {'random': 'identity', 'unpopular': 'rare'}
  by_support = [
      (names[cell['task.task_support']], cell)
      for cell in vary(grid, 'task.task_support')
      if cell['task.task_support'] in names
  ]
  usual_depth = usual(grid)['model.num_hidden']
  # In the colours of the codes; names are shared, as the legend is.
  colours = {k.replace('_', ' '): v for k, v in CODES.items()}
  return {
      title: [
          lines.Line(name, colours.get(name, style.INK), _by_layer(grid, cell))
          for name, cell in named
      ]
      for title, named in (
          (f'Codes, {depth} hidden layers', by_code),
          (f'Rare modules, {usual_depth} hidden layers', by_support),
      )
  }


def draw_decoding(library: data.Library) -> cells.Drawn:
  """Returns a point per run and seed: R2 over decoding from two layers."""
  kinds = select(read_values(library, EXPERIMENT))
  sources = {'the last hidden layer': 'last', 'the code': 'code'}

  def read(code: str, layer: str) -> pd.DataFrame:
    parts = [
        both_of(kinds.frame, cell, f'{DECODING}_{layer}').assign(
            label=style.cell_name(cell)
        )
        for cell in decodable(kinds)
        if cell['task.encoding'] == code
    ]
    empty = pd.DataFrame(columns=['x', 'y', 'label'])
    return pd.concat(parts) if parts else empty

  panels = {
      f'Decoded from {name}': [
          points.Points(code.replace('_', ' '), colour, read(code, layer))
          for code, colour in CODES.items()
      ]
      for name, layer in sources.items()
  }
  figure = points.draw(
      panels,
      x_title='R² of decoding, new combinations',
      y_title='R² on new combinations',
      x_type='linear',
      y_type='linear',
      caption=kinds.caption('A point per run and seed.', _NOT_DECODABLE),
      plot_height=390,
      shared_yaxes=True,
      horizontal_spacing=0.03,
  )
  return figure, cells.make_table(kinds, _MEASURES)


def _given(grid: cells.Cells) -> dict[str, list[bars.Bar]]:
  """Returns the network that is given the mask, beside Figure 3B's."""
  return {
      style.SUPPORT_NAMES[support]: [
          _bar(grid, cell, label, style.COLOURS[model], 'accuracy')
          for model, label in _MODELS.items()
          for cell in grid.find(name=model, task_support=support)
      ]
      for support in grid.axis('task_support')
  }


def both_of(frame: pd.DataFrame, cell: cells.Cell, x: str) -> pd.DataFrame:
  """Returns a cell's decoding 'x' and R2 'y' on new combinations, by seed."""
  return pd.DataFrame({
      'x': pick.values(frame, cell, 'ood', metric=x),
      'y': pick.values(frame, cell, 'ood', metric=R2),
  }).dropna()


def _bar(
    grid: cells.Cells, cell: cells.Cell, label: str, colour: str, metric: str
) -> bars.Bar:
  seen = grid.seen(cell, metric)
  return grid.bar(cell, label, colour, metric, beside=seen)


def _table(
    grid: cells.Cells, by_x: dict[int, cells.Cell], split: str
) -> pd.DataFrame:
  """Returns R2: index x, a column per seed."""
  ordered = sorted(by_x.items())
  return lines.by_x({x: grid.values(cell, split, R2) for x, cell in ordered})


def _by_layer(grid: cells.Cells, cell: cells.Cell) -> pd.DataFrame:
  """Returns decoding on new combinations: index layer, a column per seed."""
  depth = int(cell['model.num_hidden'])
  names = {'code': 'code'} | {
      f'layer_{i}': f'{i + 1}' if i < depth else 'output'
      for i in range(depth + 1)
  }
  table = pd.DataFrame({
      shown: grid.values(cell, metric=f'{DECODING}_{name}')
      for name, shown in names.items()
  })
  return table.T.replace(np.inf, np.nan).dropna(how='all')


FIGURES = {
    'sg_support': described.bar_grid(
        title='Given the task: which combinations must training show?',
        panels=_by_support,
        notes=('Non-compositional support holds out all masks of a module.',),
        y_title='R² on new combinations',
        beside_name=model_bars.SEEN,
        **_SCALING,
    ),
    'sg_data': _over_numbers(
        'Given the task: how many combinations must training show?', _by_data
    ),
    'sg_model': described.line_grid(
        title='Given the task: do width, depth and code matter?',
        panels=_by_width,
        notes=('Panels: how the task is given.',),
        ticks=lambda grid: sorted(
            {c['model.hidden_dim'] for c in _networks(grid)}
        ),
        x_title='width',
        y_title='R² on new combinations',
        num_columns=3,
        x_type='log',
        **_SCALING,
    ),
    'sg_transformer': _over_numbers(
        'Given the task: is a transformer better than an MLP?', _transformers
    ),
    'sg_decoding': described.Figure(
        'Given the task: can modules be decoded where networks recompose?',
        (EXPERIMENT,),
        draw_decoding,
    ),
    'sg_layers': described.line_grid(
        title='Given the task: which layer knows the modules?',
        panels=_decoding,
        notes=(
            (
                'Ridge regression of z_m, fitted on seen combinations; mean'
                ' over m.'
            ),
        ),
        x_title='layer, before its nonlinearity',
        y_title='R² of decoding, new combinations',
        x_type='category',
        y_range=(-0.2, 1.05),
        **_SCALING,
    ),
    'sg_given_or_inferred': (
        described.bar_grid(
            title='Is it better to be given the modules, or to infer them?',
            experiment=GIVEN,
            cell=GIVEN_CELL,
            panels=_given,
            measures={
                name: (name, 'accuracy')
                for name in ('test', 'ood', 'ood_k4', 'ood_k8')
            },
            notes=(
                (
                    'Linear, nonlinear: hypernetworks. All but the MLP infer'
                    ' the task.'
                ),
            ),
            y_title='OOD accuracy',
            y_range=(0, 1),
            beside_name=model_bars.SEEN,
        )._replace(experiments=(GIVEN, 'fig3b'))
    ),
}
LEARNERS = (
    learners.Learner(
        name='MLP',
        infers='given: the mask',
        experiment=GIVEN,
        fields={'model.name': multitask.NAME},
        kind=learners.Kind('given', style.INK),
        decoding=f'{DECODING}_exact_layer_2',  # The last hidden one.
    ),
)

"""Figures of what needs no training: the toy, fidelity, and costs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import layout
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.studies.outer_gradients import costs
from modular_hyperteacher.studies.outer_gradients import fidelity
from modular_hyperteacher.studies.outer_gradients import measures
from modular_hyperteacher.studies.outer_gradients import quadratic
from modular_hyperteacher.studies.outer_gradients import surrogates

_TOY = ((10, 10), (50, 25), (1000, 500))  # N, T.
_SHOWN = tuple(surrogates.CONTRASTS)
_LAST = 10  # T of figure `cr_fidelity`.
_BETAS = tuple(np.geomspace(0.001, 0.5, 28))
_MOST = 30.0  # Larger errors are not shown.


def draw_toy(library: data.Library) -> cells.Drawn:
  """Returns errors over beta in closed form, and their table."""
  del library  # Nothing of it is trained.
  rows = [
      (rule, num_free, num_last, beta, error, cosine)
      for num_free, num_last in _TOY
      for rule in _SHOWN
      for beta in _BETAS
      for error, cosine in [_toy(rule, num_free, num_last, beta)]
  ]
  columns = ['rule', 'num_free', 'num_last', 'beta', 'error', 'cosine_unrolled']
  table = pd.DataFrame(rows, columns=columns)
  panels = {
      f'{num_free} free steps, {num_last} nudged': [
          _line(rule, part.set_index('beta')[['error']])
          for rule in _SHOWN
          for part in [pick.rows(table, {'rule': rule, 'num_free': num_free})]
      ]
      for num_free, num_last in _TOY
  }
  figure = _draw(
      panels,
      'relative error',
      [
          (
              'Twenty curvatures from 0.05 to 1, descent from zero at a rate of'
              ' one. Error relative to the gradient at the inner minimum.'
          ),
          (
              f'Errors above {_MOST:g} are not shown: there, the negative phase'
              ' diverges.'
          ),
      ],
  )
  return figure, table


def _toy(
    rule: str, num_free: int, num_last: int, beta: float
) -> tuple[float, float]:
  found = quadratic.closed_form(
      surrogates.CONTRASTS[rule], num_free, num_last, beta
  )
  error, _ = quadratic.compare(found, quadratic.exact())
  _, cosine = quadratic.compare(found, quadratic.unrolled(num_free))
  return error, cosine


def draw_fidelity(library: data.Library) -> cells.Drawn:
  """Returns errors and cosines over beta, and the means of all estimates."""
  del library  # Nothing of it is trained by a config.
  table = fidelity.MEASURED.load()
  panels = {}
  for metric, title in (
      ('error', 'error'),
      ('cosine_unrolled', 'cosine with unrolled'),
  ):
    for num_free in fidelity.FREE:
      where = {
          'step': fidelity.STEPS[-1],
          'num_free': num_free,
          'num_last': _LAST,
      }
      panels[f'{title}, N = {num_free}'] = [
          _line(
              rule,
              _by_beta(of_rule, {**where, 'stop_norm': stopped}, metric),
              'dot' if stopped else 'solid',
              'norms are constants' if stopped else 'gradient of norms',
          )
          for rule in _SHOWN
          for of_rule in [pick.rows(table, {'rule': rule})]
          for stopped in (False, True)
          if len(of_rule)
      ]
  figure = _draw(
      panels,
      '',
      [
          (
              f'Linear hypernetwork after {fidelity.STEPS[-1]} unrolled steps,'
              f' {table["seed"].nunique()} seeds, T = {_LAST} nudged steps.'
          ),
          (
              'Error relative to the bilevel gradient, which norms taken as'
              ' constants do not have; cosine with the gradient through N'
              ' steps.'
          ),
      ],
      num_columns=len(fidelity.FREE),
  )
  keys = list(fidelity.CELL)
  means = table.groupby(keys, dropna=False)[list(fidelity.METRICS)]
  return figure, means.mean().reset_index()


def _by_beta(
    table: pd.DataFrame, where: Mapping[str, Any], metric: str
) -> pd.DataFrame:
  rows = pick.rows(table, where)
  return rows.pivot_table(index='beta', columns='seed', values=metric)


def draw_costs(library: data.Library) -> cells.Drawn:
  """Returns products, CPU time and memory of every rule, and their table."""
  del library
  table = costs.MEASURED.load()
  panels = {}
  for column, title in (
      ('products', 'products'),
      ('cpu_ms', 'CPU ms'),
      ('memory_mib', 'MiB'),
  ):
    for num_steps in sorted(table['num_steps'].unique()):
      panels[f'{title}, N = {num_steps}'] = [
          _cost_bar(row, column, of_largest=table[column].max())
          for row in pick.rows(table, {'num_steps': num_steps}).itertuples()
          if row.num_last_steps != 20
      ]
  figure = bars.draw(
      panels,
      y_title='share of the largest',
      caption=[
          (
              'Linear hypernetwork at laptop scale, one seed, 32 tasks per'
              " step. N free steps; numbers at names are a rule's own steps."
          ),
      ],
      tick_angle=-90,
  )
  return figure, table


def _cost_bar(row: Any, column: str, of_largest: float) -> bars.Bar:
  name, colour = measures.RULES[row.gradient]
  last = '' if pd.isna(row.num_last_steps) else f' {row.num_last_steps:.0f}'
  label = f'{measures.shorten(name)}{last}'
  value = getattr(row, column) / of_largest
  return bars.Bar(label, colour, pd.Series({0: value}))


def _line(
    rule: str, seeds: pd.DataFrame, dash: str = 'solid', dash_name: str = ''
) -> lines.Line:
  name, colour = measures.RULES[rule]
  kept = seeds.where(seeds <= _MOST).dropna(how='all')
  return lines.Line(name, colour, kept, dash, dash_name)


def _draw(
    panels: Mapping[str, Sequence[lines.Line]],
    y_title: str,
    caption: Sequence[str],
    num_columns: int = 3,
) -> Any:
  figure = lines.draw(
      panels,
      x_title='beta',
      y_title=y_title,
      x_type='log',
      num_columns=num_columns,
      markers=False,
      caption=caption,
  )
  layout.add_legend_row(figure)
  return figure


FIGURES = {
    'cr_toy': described.Figure(
        'Quadratic problem: which contrast meets the outer gradient?',
        (),
        draw_toy,
    ),
    'cr_fidelity': described.Figure(
        'Hypernetwork: which contrast meets the outer gradient?',
        (),
        draw_fidelity,
    ),
    'cr_costs': described.Figure(
        'What does a step of each outer gradient cost?', (), draw_costs
    ),
}

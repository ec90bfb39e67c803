"""The list of all figures and tables.

A figure reads the finished runs of the experiments that it names.
`data.Library` finds them by the hash of their config, wherever they were
trained. Figures that name the same experiment share its runs.
"""

from collections.abc import Callable, Mapping
import functools
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures.claims import longer
from modular_hyperteacher.figures.claims import over_training
from modular_hyperteacher.figures.extensions import acting
from modular_hyperteacher.figures.extensions import bridges
from modular_hyperteacher.figures.extensions import fig_a3_students
from modular_hyperteacher.figures.extensions import inference
from modular_hyperteacher.figures.extensions import more_modules
from modular_hyperteacher.figures.extensions import published_solver
from modular_hyperteacher.figures.extensions import restarts
from modular_hyperteacher.figures.extensions import sample_complexity
from modular_hyperteacher.figures.extensions import scaling_law
from modular_hyperteacher.figures.extensions import theorem
from modular_hyperteacher.figures.extensions import two_layers
from modular_hyperteacher.figures.extensions import ways
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.paper import fig2c
from modular_hyperteacher.figures.paper import fig2d
from modular_hyperteacher.figures.paper import fig3a
from modular_hyperteacher.figures.paper import fig3b
from modular_hyperteacher.figures.paper import fig3c
from modular_hyperteacher.figures.paper import fig3e
from modular_hyperteacher.figures.paper import fig3f
from modular_hyperteacher.figures.paper import fig4a
from modular_hyperteacher.figures.paper import fig4b
from modular_hyperteacher.figures.paper import fig4e
from modular_hyperteacher.figures.paper import fig_a1
from modular_hyperteacher.figures.paper import fig_a3
from modular_hyperteacher.figures.paper import fig_a4
from modular_hyperteacher.figures.paper import fig_a8
from modular_hyperteacher.figures.paper import table_a1
from modular_hyperteacher.figures.paper import tables_a2_a8
from modular_hyperteacher.figures.paper import tables_a10_a12
from modular_hyperteacher.studies.amortised.figures import amortised
from modular_hyperteacher.studies.given_tasks.figures import given_tasks
from modular_hyperteacher.studies.in_context.figures import fuzzy_logic
from modular_hyperteacher.studies.in_context.figures import in_context
from modular_hyperteacher.studies.in_context.figures import in_context_bridge
from modular_hyperteacher.studies.in_context.figures import in_context_sizes
from modular_hyperteacher.studies.in_context.figures import sraven
from modular_hyperteacher.studies.meta_seq2seq.figures import scan_attention
from modular_hyperteacher.studies.meta_seq2seq.figures import scan_directions
from modular_hyperteacher.studies.meta_seq2seq.figures import scan_lengths
from modular_hyperteacher.studies.meta_seq2seq.figures import scan_tables
from modular_hyperteacher.studies.sparse_maml.figures import sparse_maml


class Figure(NamedTuple):
  """One figure or table.

  Attributes:
    title: one line.
    experiments: those whose finished runs it reads; may be ().
    draw: library -> (figure, table of the plotted numbers). The figure is None
      for Tables A1, A10, A11 and A12, which are shown as tables.
  """

  title: str
  experiments: tuple[str, ...]
  draw: Callable[[data.Library], tuple[go.Figure | None, pd.DataFrame]]

  def make(
      self, library: data.Library
  ) -> tuple[go.Figure | None, pd.DataFrame]:
    """Returns figure and table; its column 'preset' names the scale."""
    figure, table = self.draw(library)
    if 'preset' not in table:
      presets = dict.fromkeys(
          preset
          for experiment in self.experiments
          for preset in library.values(experiment)['preset'].unique()
      )
      scale = 'constructed' if not self.experiments else ' and '.join(presets)
      table = table.assign(preset=scale or 'no run')
    return figure, table


def _of(module: Any, *more: str) -> Figure:
  """Returns the figure of a module with a single one; more experiments."""
  return Figure(module.TITLE, (module.EXPERIMENT, *more), module.draw)


def _of_lake(module: Any, name: str, *experiments: str) -> Figure:
  """Returns one of several figures of a module on meta seq2seq."""
  draw = functools.partial(module.draw, name)
  return Figure(module.TITLES[name], experiments, draw)


def _of_task(title: str, draw: Callable[[int, str], Any]) -> Figure:
  """Returns the figure of a sampled task, which shows no results."""
  return Figure(title, (), lambda library: draw(fig4a.SEED, title))


# Heading -> name -> figure, in the order of the report.
SECTIONS = {
    'Theory': {
        'fig2c': _of(fig2c),
        'published_solver': Figure(
            published_solver.TITLE, (), published_solver.draw
        ),
        'fig2d': Figure(fig2d.TITLES['fig2d'], ('fig2d',), fig2d.draw),
        'fig_a2': Figure(fig2d.TITLES['fig_a2'], ('fig2d',), fig2d.draw_fig_a2),
        'fig2d_grid': Figure(
            fig2d.TITLES['fig2d_grid'], ('fig2d',), fig2d.draw_grid
        ),
        'table_a1': _of(table_a1),
        'fig_a1': Figure(fig_a1.TITLE, (), fig_a1.draw),
        'theorem': _of(theorem),
        'bridges': _of(bridges),
        'restarts': _of(restarts),
        'inference': _of(inference),
    },
    'Hyperteacher': {
        'fig3a': _of_task(fig3a.TITLE, fig3a.draw_task),
        'fig3b': _of(fig3b),
        'fig3b_pairs': Figure(
            fig3b.TITLE_PAIRS, ('fig3b_pairs',), fig3b.draw_pairs
        ),
        'fig3c': Figure(fig3c.TITLE_3C, ('fig3c',), fig3c.draw_3c),
        'fig3d': Figure(fig3c.TITLE_3D, ('fig3c',), fig3c.draw_3d),
        'two_layers': _of(two_layers),
        'fig3e': Figure(fig3e.TITLE_3E, ('fig3e',), fig3e.draw_3e),
        'fig3f': _of(fig3f),
        'fig_a3': _of(fig_a3),
        'fig_a3_students': _of(fig_a3_students),
        'fig_a3_two_layers': Figure(
            fig_a3.TITLE_TWO_LAYERS,
            (fig_a3.TWO_LAYERS,),
            fig_a3.draw_two_layers,
        ),
        'fig_a4': Figure(fig_a4.TITLE_A4, ('fig_a4',), fig_a4.draw_a4),
        'fig_a5': Figure(fig_a4.TITLE_A5, ('fig_a5',), fig_a4.draw_a5),
        'fig_a6': Figure(fig3e.TITLE_A6, ('fig3e',), fig3e.draw_a6),
        'fig_a7': Figure(fig3e.TITLE_A7, ('fig3e',), fig3e.draw_a7),
        **{
            f'table_{name.lower()}': Figure(
                tables_a2_a8.title(name),
                ('fig3e',),
                functools.partial(tables_a2_a8.draw, name),
            )
            for name in tables_a2_a8.TABLES
        },
        'more_modules': _of(more_modules),
        'amortised': _of(amortised),
        **{
            name: Figure(sparse_maml.TITLES[name], ('sparse_maml',), draw)
            for name, draw in sparse_maml.DRAW.items()
        },
    },
    'Networks that are given the task': {
        **{
            name: Figure(
                given_tasks.TITLES[name], (given_tasks.EXPERIMENT,), draw
            )
            for name, draw in given_tasks.DRAW.items()
        },
        'sg_given_or_inferred': Figure(
            given_tasks.TITLES['sg_given_or_inferred'],
            (given_tasks.GIVEN, 'fig3b'),
            given_tasks.draw_given,
        ),
    },
    'Grid worlds': {
        'fig4a': _of_task(fig4a.TITLE_4A, fig4a.draw_preferences),
        'fig4b': Figure(fig4b.TITLE_4B, ('fig4b',), fig4b.draw_4b),
        'fig4c': Figure(fig4b.TITLE_4C, ('fig4c',), fig4b.draw_4c),
        'fig4d': _of_task(fig4a.TITLE_4D, fig4a.draw_goals),
        'fig4e': Figure(fig4e.TITLE_4E, ('fig4e', 'fig_a10'), fig4e.draw_4e),
        'fig4f': Figure(fig4e.TITLE_4F, ('fig4e',), fig4e.draw_4f),
        'fig_a8': Figure(fig_a8.TITLE_A8, ('fig_a8',), fig_a8.draw_a8),
        'fig_a9': Figure(fig4e.TITLE_A9, ('fig4e',), fig4e.draw_a9),
        'fig_a10': Figure(fig_a8.TITLE_A10, ('fig_a10',), fig_a8.draw_a10),
    },
    'Beyond the paper': {
        'ways': Figure(ways.TITLE, ways.EXPERIMENTS, ways.draw),
        'scaling_law': Figure(scaling_law.TITLE, ('fig_a3',), scaling_law.draw),
        'sample_complexity': _of(sample_complexity),
        'acting_success': Figure(
            acting.TITLE_SUCCESS, ('fig4e',), acting.draw_success
        ),
        'acting_paths': Figure(
            acting.TITLE_PATHS, ('fig4e',), acting.draw_paths
        ),
        'acting_return': Figure(
            acting.TITLE_RETURN, ('fig4c',), acting.draw_return
        ),
        'acting_connected': Figure(
            acting.TITLE_CONNECTED, ('fig4b',), acting.draw_connected
        ),
    },
    'Meta sequence-to-sequence learning': {
        'scan_me': _of_lake(scan_tables, 'scan_me', 'scan_me'),
        'scan_attention_me': _of_lake(
            scan_attention, 'scan_attention_me', 'scan_me'
        ),
        'scan_table2': _of_lake(scan_tables, 'scan_table2', 'scan_add_jump'),
        'scan_attention': _of_lake(
            scan_attention, 'scan_attention', 'scan_add_jump'
        ),
        'scan_table3': _of_lake(
            scan_tables, 'scan_table3', 'scan_around_right', 'scan_length'
        ),
        'scan_directions': _of(scan_directions, 'scan_around_right'),
        'scan_lengths': Figure(
            scan_lengths.TITLE, scan_lengths.EXPERIMENTS, scan_lengths.draw
        ),
    },
    'In-context learning': {
        'in_context': _of(in_context),
        'in_context_sizes': _of(in_context_sizes),
        'in_context_hyperteacher': _of(in_context_bridge, 'fig3b', 'amortised'),
        'fuzzy_logic': Figure(
            fuzzy_logic.TITLE_2C, (fuzzy_logic.EXPERIMENT,), fuzzy_logic.draw_2c
        ),
        'fuzzy_logic_a1': Figure(
            fuzzy_logic.TITLE_A1, (fuzzy_logic.EXPERIMENT,), fuzzy_logic.draw_a1
        ),
        'fuzzy_logic_decoding': Figure(
            fuzzy_logic.TITLE_DECODING,
            (fuzzy_logic.EXPERIMENT,),
            fuzzy_logic.draw_decoding,
        ),
        'sraven': _of(sraven),
        'sraven_decoding': Figure(
            sraven.TITLE_DECODING, (sraven.EXPERIMENT,), sraven.draw_decoding
        ),
    },
    'Claims over training': {
        'over_training': Figure(
            over_training.TITLE,
            (),
            functools.partial(over_training.draw, claims.CLAIMS),
        ),
        'longer': Figure(
            longer.TITLE,
            tuple(claim.experiment for claim in longer.CLAIMS),
            longer.draw,
        ),
    },
    'Hyperparameters': {
        f'table_{name.lower()}': Figure(
            tables_a10_a12.title(name),
            (),
            functools.partial(tables_a10_a12.draw, name),
        )
        for name in tables_a10_a12.TABLES
    },
}
FIGURES = {
    name: figure
    for section in SECTIONS.values()
    for name, figure in section.items()
}


def add_section(heading: str, figures: Mapping[str, Figure]) -> None:
  """Adds figures for this process only."""
  SECTIONS[heading] = dict(figures)
  FIGURES.update(figures)

"""The list of all figures and tables.

A figure reads the finished runs of the experiments that it names.
`data.Library` finds them by the hash of their config, wherever they were
trained. Figures that name the same experiment share its runs.
"""

from collections.abc import Callable, Mapping
import functools
from typing import Any

from modular_hyperteacher.experiments import plugins
from modular_hyperteacher.figures import claims
from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.extensions import acting
from modular_hyperteacher.figures.extensions import bridges
from modular_hyperteacher.figures.extensions import fig_a3_students
from modular_hyperteacher.figures.extensions import inference
from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.figures.extensions import more_modules
from modular_hyperteacher.figures.extensions import over_training
from modular_hyperteacher.figures.extensions import published_solver
from modular_hyperteacher.figures.extensions import restarts
from modular_hyperteacher.figures.extensions import sample_complexity
from modular_hyperteacher.figures.extensions import scaling_law
from modular_hyperteacher.figures.extensions import teacher_size
from modular_hyperteacher.figures.extensions import theorem
from modular_hyperteacher.figures.extensions import two_layers
from modular_hyperteacher.figures.paper import fig2c
from modular_hyperteacher.figures.paper import fig2d
from modular_hyperteacher.figures.paper import fig3a
from modular_hyperteacher.figures.paper import fig3b
from modular_hyperteacher.figures.paper import fig3b_tasks
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
from modular_hyperteacher.figures.paper import summary
from modular_hyperteacher.figures.paper import table_a1
from modular_hyperteacher.figures.paper import tables_a2_a8
from modular_hyperteacher.figures.paper import tables_a10_a12

Figure = described.Figure


def of(module: Any, *more: str) -> Figure:
  """Returns the figure of a module with a single one; more experiments."""
  return Figure(module.TITLE, (module.EXPERIMENT, *more), module.draw)


def _of_task(title: str, draw: Callable[[int, str], Any]) -> Figure:
  """Returns the figure of a sampled task, which shows no results."""
  return Figure(title, (), lambda library: draw(fig4a.SEED, title))


# The paper's: heading -> name -> figure, in the order of the report.
_PAPER = {
    'In short': {
        'summary': Figure(summary.TITLE, summary.EXPERIMENTS, summary.draw)
    },
    'Theory': {
        'fig2c': of(fig2c),
        fig2c.SHARED_INPUTS: Figure(
            fig2c.TITLE_SHARED_INPUTS,
            (fig2c.SHARED_INPUTS,),
            functools.partial(
                fig2c.draw,
                experiment=fig2c.SHARED_INPUTS,
                title=fig2c.TITLE_SHARED_INPUTS,
            ),
        ),
        'published_solver': Figure(
            published_solver.TITLE, (), published_solver.draw
        ),
        'fig2d': Figure(fig2d.TITLES['fig2d'], ('fig2d',), fig2d.draw),
        'fig_a2': Figure(fig2d.TITLES['fig_a2'], ('fig2d',), fig2d.draw_fig_a2),
        'fig2d_grid': Figure(
            fig2d.TITLES['fig2d_grid'], ('fig2d',), fig2d.draw_grid
        ),
        'table_a1': of(table_a1),
        'fig_a1': Figure(fig_a1.TITLE, (), fig_a1.draw),
        'theorem': of(theorem),
        'bridges': of(bridges),
        'restarts': of(restarts),
        'inference': of(inference),
    },
    'Hyperteacher': {
        'fig3a': _of_task(fig3a.TITLE, fig3a.draw_task),
        **fig3b.FIGURES,
        'fig3b_tasks': fig3b_tasks.FIGURE,
        **fig3c.FIGURES,
        'two_layers': two_layers.FIGURE,
        'teacher_size': teacher_size.FIGURE,
        'fig3e': fig3e.FIGURE_3E,
        'fig3f': fig3f.FIGURE,
        'fig_a3': of(fig_a3),
        'fig_a3_students': fig_a3_students.FIGURE,
        'fig_a3_two_layers': Figure(
            fig_a3.TITLE_TWO_LAYERS,
            (fig_a3.TWO_LAYERS,),
            fig_a3.draw_two_layers,
        ),
        **fig_a4.FIGURES,
        'fig_a6': fig3e.FIGURE_A6,
        'fig_a7': fig3e.FIGURE_A7,
        **{
            f'table_{name.lower()}': Figure(
                tables_a2_a8.title(name),
                ('fig3e',),
                functools.partial(tables_a2_a8.draw, name),
            )
            for name in tables_a2_a8.TABLES
        },
        'more_modules': more_modules.FIGURE,
    },
    'Grid worlds': {
        'fig4a': _of_task(fig4a.TITLE_4A, fig4a.draw_preferences),
        **fig4b.FIGURES,
        'fig4d': _of_task(fig4a.TITLE_4D, fig4a.draw_goals),
        'fig4e': Figure(fig4e.TITLE_4E, ('fig4e', 'fig_a10'), fig4e.draw_4e),
        'fig4f': Figure(fig4e.TITLE_4F, ('fig4e',), fig4e.draw_4f),
        'fig_a8': fig_a8.FIGURE_A8,
        'fig_a9': fig4e.FIGURE_A9,
        'fig_a10': fig_a8.FIGURE_A10,
    },
    'Beyond the paper': {
        'ways': Figure(learners.TITLE, ('fig3b',), learners.draw),
        'scaling_law': Figure(scaling_law.TITLE, ('fig_a3',), scaling_law.draw),
        'sample_complexity': of(sample_complexity),
        **acting.FIGURES,
    },
    'Claims over training': {
        'over_training': Figure(
            over_training.TITLE,
            (),
            lambda library: over_training.draw(claims.known(), library),
        ),
        'longer': Figure(
            over_training.TITLE_PARTS,
            tuple(claim.experiment for claim in claims.PARTS),
            lambda library: over_training.draw_parts(claims.PARTS, library),
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
_added: dict[str, dict[str, Figure]] = {}


@functools.cache
def _sections() -> dict[str, Mapping[str, Figure]]:
  studies = [study for study in plugins.studies() if study.figures]
  chapters = {study.title: plugins.resolve(study.figures) for study in studies}
  return {**_PAPER, **chapters}


def sections() -> dict[str, Mapping[str, Figure]]:
  """Returns heading -> name -> figure: the paper, then a chapter per study."""
  return {**_sections(), **_added}


def figures() -> dict[str, Figure]:
  """Returns name -> figure, in the order of the report."""
  return {n: f for section in sections().values() for n, f in section.items()}


def add_section(heading: str, figures: Mapping[str, Figure]) -> None:
  """Adds figures for this process only."""
  _added[heading] = dict(figures)

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
from modular_hyperteacher.figures.extensions import bridges
from modular_hyperteacher.figures.extensions import learners
from modular_hyperteacher.figures.extensions import over_training
from modular_hyperteacher.figures.extensions import published_solver
from modular_hyperteacher.figures.extensions import sample_complexity
from modular_hyperteacher.figures.extensions import scaling_law
from modular_hyperteacher.figures.extensions import students
from modular_hyperteacher.figures.extensions import variants
from modular_hyperteacher.figures.paper import counterexamples
from modular_hyperteacher.figures.paper import fig2c
from modular_hyperteacher.figures.paper import fig2d
from modular_hyperteacher.figures.paper import fig3a
from modular_hyperteacher.figures.paper import fig3b
from modular_hyperteacher.figures.paper import fig3c
from modular_hyperteacher.figures.paper import fig3e
from modular_hyperteacher.figures.paper import fig4a
from modular_hyperteacher.figures.paper import fig4e
from modular_hyperteacher.figures.paper import fig_a3
from modular_hyperteacher.figures.paper import fig_a4
from modular_hyperteacher.figures.paper import gridworld_bars
from modular_hyperteacher.figures.paper import student_size
from modular_hyperteacher.figures.paper import summary
from modular_hyperteacher.figures.paper import table_a1
from modular_hyperteacher.figures.paper import tables_a2_a8
from modular_hyperteacher.figures.paper import tables_a10_a12

Figure = described.Figure


def of(module: Any, *more: str) -> Figure:
  """Returns the figure of a module with a single one; more experiments."""
  return Figure(module.TITLE, (module.EXPERIMENT, *more), module.draw)


def _of_task(title: str, draw: Callable[[int], Any]) -> Figure:
  """Returns the figure of a sampled task, which shows no results."""
  return Figure(title, (), lambda library: draw(fig4a.SEED))


# The paper's: heading -> name -> figure, in the order of the report.
_PAPER = {
    'In short': {
        'summary': Figure(summary.TITLE, summary.EXPERIMENTS, summary.draw)
    },
    'Theory': {
        **fig2c.FIGURES,
        'published_solver': Figure(
            published_solver.TITLE, (), published_solver.draw
        ),
        **fig2d.FIGURES,
        'table_a1': of(table_a1),
        'fig_a1': Figure(counterexamples.TITLE, (), counterexamples.draw),
        'theorem': students.FIGURES['theorem'],
        'bridges': bridges.FIGURE,
        'restarts': students.FIGURES['restarts'],
        'inference': students.FIGURES['inference'],
    },
    'Hyperteacher': {
        'fig3a': _of_task(fig3a.TITLE, fig3a.draw_task),
        **fig3b.FIGURES,
        **fig3b.FIGURES_TASKS,
        **fig3c.FIGURES,
        'two_layers': variants.FIGURES['two_layers'],
        'teacher_size': variants.FIGURES['teacher_size'],
        'fig3e': fig3e.FIGURE_3E,
        'fig3e_desktop': fig3e.FIGURE_3E_DESKTOP,
        'fig3f': student_size.FIG_3F,
        'fig_a3': fig_a3.FIGURES['fig_a3'],
        'fig_a3_students': variants.FIGURES['fig_a3_students'],
        'fig_a3_two_layers': fig_a3.FIGURES['fig_a3_two_layers'],
        **fig_a4.FIGURES,
        'fig_a6': fig3e.FIGURE_A6,
        'fig_a7': fig3e.FIGURE_A7,
        **tables_a2_a8.FIGURES,
        'more_modules': variants.FIGURES['more_modules'],
    },
    'Grid worlds': {
        'fig4a': _of_task(fig4a.TITLE_4A, fig4a.draw_preferences),
        'fig4b': gridworld_bars.FIG_4B,
        'fig4c': gridworld_bars.FIG_4C,
        'fig4d': _of_task(fig4a.TITLE_4D, fig4a.draw_goals),
        'fig4e': fig4e.FIG_4E,
        'fig4f': fig4e.FIG_4F,
        'fig_a8': student_size.FIG_A8,
        'fig_a9': gridworld_bars.FIG_A9,
        'fig_a10': student_size.FIG_A10,
    },
    'Beyond the paper': {
        'ways': Figure(learners.TITLE, ('fig3b',), learners.draw, 'laptop'),
        'scaling_law': of(scaling_law),
        'sample_complexity': sample_complexity.FIGURE,
        **gridworld_bars.ACTING,
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
    'Hyperparameters': tables_a10_a12.FIGURES,
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

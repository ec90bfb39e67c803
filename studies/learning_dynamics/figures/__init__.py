"""Figures of this study."""

from modular_hyperteacher.figures import registry
from modular_hyperteacher.studies.learning_dynamics import measures
from modular_hyperteacher.studies.learning_dynamics.figures import linear
from modular_hyperteacher.studies.learning_dynamics.figures import modules
from modular_hyperteacher.studies.learning_dynamics.figures import students

FIGURES = {
    'ld_linear': registry.Figure(linear.TITLE, (), linear.draw),
    **students.FIGURES,
    'ld_order_early': registry.Figure(
        'Which modules and families are learned first, in the first steps?',
        (measures.EARLY,),
        lambda library: students.draw_order(library, measures.EARLY),
    ),
    'ld_modules': registry.Figure(
        modules.TITLE, (measures.MODULES,), modules.draw
    ),
}

"""Variants of the hyperteacher's figures, beyond the paper.

Figure 3D for teachers with two generated layers. How large must a teacher be
for its modules to be found? How accurate are combinations of more modules than
training combined, beside a control that was trained on combinations of any
size, as difficulty also depends on their number? What makes few modules slow to
learn (Figure A3)?
"""

from modular_hyperteacher.figures import described
from modular_hyperteacher.figures.library import cells
from modular_hyperteacher.figures.plotting import bars
from modular_hyperteacher.figures.plotting import lines
from modular_hyperteacher.figures.plotting import style

_OOD, _SEEN = ('ood', 'accuracy'), ('test', 'accuracy')
_R2_AND_ACCURACY = {'R² of decoding': 'r2', 'OOD accuracy': 'accuracy'}
# From few inputs to as many as published.
_COLOURS = ('#E69F00', '#CC79A7', '#0072B2')

CELL_MORE_MODULES = ('model.name', 'task.max_active')
# Few modules, as both were trained on; more, held out from the control, too;
# and all, of which there is a single combination.
SPLITS_MORE_MODULES = ('ood_k2', 'ood_k4', 'ood_k8')
_NUMBERS = (1, 2, 4, 8)

A3_STUDENTS = 'fig_a3_students'
FACTOR = 'model.modules_per_teacher_module'
HELD_OUT = 'task.fraction_ood'
CELL_A3_STUDENTS = ('model.name', 'task.num_modules', FACTOR, HELD_OUT)


def _by_support(grid: cells.Cells, panel: list[cells.Cell]) -> list[bars.Bar]:
  drawn = []
  for cell in panel:
    label = style.SUPPORT_NAMES[cell['task.task_support']]
    colour = style.COLOURS[cell['model.name']]
    drawn.append(grid.bar(cell, label.removesuffix(' support'), colour))
  return drawn


def _by_teacher(grid: cells.Cells) -> dict[str, list[lines.Line]]:
  """Returns panels over units, with a line per input; and over examples."""
  inputs, units, examples = (
      sorted(grid.axis(name))
      for name in ('input_dim', 'teacher_hidden_dim', 'num_support')
  )

  def line(metric: str, column: str, number: int, **fixed: int) -> lines.Line:
    values = {
        cell[column]: grid.values(cell, metric=metric)
        for cell in grid.find(input_dim=number, **fixed)
    }
    colour = dict(zip(inputs, _COLOURS))[number]
    seeds = lines.by_x(dict(sorted(values.items())))
    return lines.Line(f'{number} inputs', colour, seeds)

  over_units = {
      f'{title}, {examples[-1]} examples': [
          line(metric, 'task.teacher_hidden_dim', n, num_support=examples[-1])
          for n in inputs
      ]
      for title, metric in _R2_AND_ACCURACY.items()
  }
  most = {'number': inputs[-1], 'teacher_hidden_dim': units[-1]}
  return over_units | {
      f'{title}, {units[-1]} units': [line(metric, 'task.num_support', **most)]
      for title, metric in _R2_AND_ACCURACY.items()
  }


def _beside_control(
    grid: cells.Cells, panel: list[cells.Cell]
) -> list[lines.Line]:
  control = max(grid.axis('max_active'))
  drawn = []
  for cell in panel:
    model, most = cell.values()
    how = ('dash', 'control') if most == control else ('solid', f'K = {most}')
    values = {k: grid.values(cell, f'ood_k{k}') for k in _NUMBERS}
    drawn.append(described.model_line(model, lines.by_x(values), *how))
  return drawn


def _by_student(grid: cells.Cells) -> dict[str, list[bars.Bar]]:
  panels: dict[str, list[bars.Bar]] = {}
  for title, split in (('New', 'ood'), ('Seen', 'test')):
    for model in grid.models:
      panel = panels[f'{title}, {style.MODEL_NAMES[model].lower()}'] = []
      for cell in grid.find(name=model):
        _, modules, factor, held_out = cell.values()
        label = f'{modules}<br>{modules * factor}<br>{held_out:.0%}'
        panel.append(grid.bar(cell, label, style.COLOURS[model], split=split))
  return panels


FIGURES = {
    'two_layers': described.bar_grid(
        title='Figure 3D with two generated layers: does it hold?',
        experiment='two_layers',
        cell=('model.name', 'task.num_modules', 'task.task_support'),
        panels=described.split('{name}, M = {num_modules}', _by_support),
        measures={
            'ood_accuracy': _OOD,
            'r2': ('ood', 'r2'),
            'test_accuracy': _SEEN,
        },
        y_title='OOD accuracy',
    ),
    'teacher_size': described.line_grid(
        title='How large must a teacher be for its modules to be found?',
        experiment='teacher_size',
        cell=('task.input_dim', 'task.teacher_hidden_dim', 'task.num_support'),
        panels=_by_teacher,
        measures={
            'r2': ('ood', 'r2'),
            'ood_accuracy': _OOD,
            'test_accuracy': _SEEN,
        },
        notes=(
            (
                'Linear hypernetwork, 64 wide, 16 tasks per step; two generated'
                ' layers. Published: 16 inputs, 32 units, 256 examples.'
            ),
        ),
        x_title='hidden units of the teacher (above), examples (below)',
        y_title='mean over OOD tasks',
        num_columns=2,
    ),
    'more_modules': described.line_grid(
        title=(
            'Section 4.1: do models solve tasks of more modules than in'
            ' training?'
        ),
        experiment='more_modules',
        cell=CELL_MORE_MODULES,
        panels=described.split('{name}', _beside_control),
        measures={f'ood_k{k}': (f'ood_k{k}', 'accuracy') for k in _NUMBERS},
        notes=(
            (
                'Solid: trained on combinations of up to K modules. Dashed:'
                ' trained on combinations of any size.'
            ),
            (
                'There is a single combination of all modules; controls may be'
                ' trained on it, too.'
            ),
        ),
        ticks=_NUMBERS,
        x_title='modules per task',
        y_title='OOD accuracy',
        x_type='log',
    ),
    'fig_a3_students': described.bar_grid(
        title='Figure A3 with one thing changed: what makes few modules slow?',
        experiment=A3_STUDENTS,
        cell=CELL_A3_STUDENTS,
        panels=_by_student,
        measures={'ood': _OOD, 'test': _SEEN},
        notes=(
            (
                'New and seen: combinations of modules. Below each bar: modules'
                ' of the teacher (M), modules of the student, and the share of'
                ' combinations that is held out. The first bar of each M is as'
                ' in Figure A3.'
            ),
        ),
        y_title='accuracy after the last step',
    ),
}

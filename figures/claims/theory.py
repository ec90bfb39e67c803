"""Claims of the theory: Section 3, Figures 2C and 2D, Appendix A.

Each is decided for the published way of inferring a student's latent and for a
converged one. The id without suffix is the converged one's below the published
scale, where the published one is far from its end; at the published scale, the
published one's.
"""

import functools
import itertools

from figures import counterexamples
from figures import data
from figures import theorem
from figures import theory
from figures import verdicts
from modular_hyperteacher.tasks import families

_PUBLISHED = 'adamw'
_CONSTRUCTED = ('counterexample', 'ood_task')
# "Not noticeably": the change of alignment that would be noticed.
_NOTICED = 0.05
# Relative to target power: what no training could call fitted.
_UNFITTED = 0.02


def _alignment(frame, **cell):
  return verdicts.sample(frame, cell, 'ood', 'alignment')


def _headline(frame):
  """Returns the solver that a claim without suffix is about."""
  return theory.solvers(frame)[0]


def _connected_above_disconnected(frame, latent_type, solver=None):
  solver = solver or _headline(frame)
  supports = [
      s for kind, s in families.TABLE_A9.values() if kind == latent_type
  ]
  connected = [s for s in supports if theory.is_connected(s)]
  disconnected = [s for s in supports if not theory.is_connected(s)]

  def of(support):
    return _alignment(frame, **{
        theory.SOLVER: solver,
        theory.LATENTS: latent_type,
        theory.SUPPORT: support,
    })

  return [
      verdicts.difference(of(higher), of(lower))
      for higher, lower in itertools.product(connected, disconnected)
  ]


def _of_size(frame, solver, latent_type, hidden_factor, module_factor):
  width = 16 * hidden_factor
  return _alignment(frame, **{
      theory.SOLVER: solver,
      theory.LATENTS: latent_type,
      theory.HIDDEN: width,
      theory.MODULES: module_factor,
  })


def _falls_with_size(frame, solver=None):
  solver = solver or _headline(frame)
  size = functools.partial(_of_size, frame, solver, 'discrete')
  largest = _largest(frame)
  others = [(largest, 2), (2, largest), (largest, largest)]
  if frame[theory.MODULES].min() == 1:  # The published grid starts at twice.
    others.append((1, 1))
  return [verdicts.difference(size(2, 2), size(*other)) for other in others]


def _stays_with_size(frame, solver=None):
  solver = solver or _headline(frame)
  size = functools.partial(_of_size, frame, solver, 'continuous')
  largest = _largest(frame)
  return [
      verdicts.difference(size(*other), size(2, 2), bound=-_NOTICED)
      for other in ((largest, 2), (2, largest), (largest, largest))
  ]


def _largest(frame):
  return int(frame[theory.MODULES].max())


def _decay_does_not_help(frame, solver=None):
  solver = solver or _headline(frame)
  frame = frame[frame[theory.SOLVER] == solver]
  decays = sorted(frame[theory.WEIGHT_DECAY].unique())[1:]
  sizes = frame[frame[theory.MODULES] > 2]
  cells = sizes[[theory.HIDDEN, theory.MODULES]].drop_duplicates()
  cells = cells.to_dict('records')

  def of(cell, weight_decay):
    return _alignment(frame, **{
        theory.SOLVER: solver,
        **cell,
        theory.WEIGHT_DECAY: weight_decay,
    })

  # Where nothing is missing there is nothing to restore, which decides nothing.
  if all(of(cell, 0.0).values.mean() > 1 - _NOTICED for cell in cells):
    return []
  return [
      verdicts.difference(of(cell, 0.0), of(cell, decay), bound=-_NOTICED)
      for cell in cells
      for decay in decays
  ]


def _without_error(frame, task_support):
  """Yields number of outputs -> the students without error in training."""
  students = theorem.make_table(frame)
  students = students[
      (students['task_support'] == task_support)
      & (students['train_loss'] < theorem.NEAR_ZERO)
  ]
  for output_dim, found in students.groupby('output_dim'):
    if len(found) > 1:
      yield output_dim, found.set_index('seed')


def _sample_of_students(frame, name, task_support, output_dim, values):
  cell = dict(zip(theorem.CELL, (task_support, output_dim)))
  runs = data.rows(frame, cell)
  return verdicts.Sample(
      f'{name}, outputs: {output_dim}', values, runs, cell, 'ood', name
  )


def _fits_everything(frame):
  """Connected students without error in training have no OOD error, on average.

  Up to ten times what counts as none in training, in the worst of the new tasks
  that were drawn for each student.
  """
  return [
      verdicts.level(
          _sample_of_students(
              frame,
              f'-{name} of connected students without training error',
              'ring',
              output_dim,
              -students[column],
          ),
          -bound,
      )
      for output_dim, students in _without_error(frame, 'ring')
      for name, column, bound in (
          ('largest OOD loss', 'ood_loss_max', 10 * theorem.NEAR_ZERO),
          ('residual of identification', 'residual', 1e-2),
      )
  ]


def _need_not_fit(frame):
  """With one output, as in the theorem: several tell hidden units apart."""
  return [
      verdicts.level(
          _sample_of_students(
              frame,
              'share of disconnected students without training error that do'
              ' not fit',
              'triangles',
              output_dim,
              (students['ood_loss_max'] > _UNFITTED).astype(float),
          ),
          0.0,
      )
      for output_dim, students in _without_error(frame, 'triangles')
      if output_dim == 1
  ]


def _each_condition_is_needed(frame):
  if frame['train_error'].max() > 1e-9:
    return []
  return [
      verdicts.level(
          verdicts.sample(frame, cell, 'ood', 'relative_error'), _UNFITTED
      )
      for cell in frame[list(_CONSTRUCTED)].drop_duplicates().to_dict('records')
  ]


def _per_solver(id_, **fields):
  """Returns the claim and, with a suffix, that of the published solver."""
  decide = fields.pop('decide')
  sentence = fields.pop('sentence')
  published = functools.partial(decide, solver=_PUBLISHED)
  return (
      verdicts.Claim(id=id_, decide=decide, sentence=sentence, **fields),
      verdicts.Claim(
          id=f'{id_}-adam',
          decide=published,
          sentence=f'{sentence} (Latents inferred by Adam, as published.)',
          **fields,
      ),
  )


CLAIMS = (
    *_per_solver(
        '2C-c',
        sentence=(
            'Continuous tasks: module alignment is higher with connected than'
            ' with disconnected support.'
        ),
        artefact='Figure 2C',
        experiment='fig2c',
        figure='fig2c',
        cell=(theory.SOLVER, theory.LATENTS, theory.SUPPORT),
        decide=functools.partial(
            _connected_above_disconnected, latent_type='continuous'
        ),
    ),
    *_per_solver(
        '2C-d',
        sentence=(
            'Discrete tasks: module alignment is higher with connected than'
            ' with disconnected support.'
        ),
        artefact='Figure 2C',
        experiment='fig2c',
        figure='fig2c',
        cell=(theory.SOLVER, theory.LATENTS, theory.SUPPORT),
        decide=functools.partial(
            _connected_above_disconnected, latent_type='discrete'
        ),
    ),
    *_per_solver(
        '2D-d',
        sentence=(
            'Discrete tasks: module alignment falls once hidden units and'
            " modules of the student exceed the teacher's by more than a"
            ' little; a little is better than none.'
        ),
        artefact='Figure 2D',
        experiment='fig2d',
        figure='fig2d',
        cell=(theory.SOLVER, theory.LATENTS, theory.HIDDEN, theory.MODULES),
        decide=_falls_with_size,
    ),
    *_per_solver(
        '2D-c',
        sentence=(
            'Continuous tasks: overparameterisation does not lower module'
            f' alignment noticeably (by {_NOTICED:g}).'
        ),
        artefact='Figure 2D',
        experiment='fig2d',
        figure='fig2d',
        cell=(theory.SOLVER, theory.LATENTS, theory.HIDDEN, theory.MODULES),
        decide=_stays_with_size,
    ),
    *_per_solver(
        'A1',
        sentence=(
            'Weight decay does not restore the alignment of overparameterised'
            f' students (by {_NOTICED:g}).'
        ),
        artefact='Table A1',
        undecided=(
            'without weight decay alignment leaves nothing to restore (more'
            f' than {1 - _NOTICED:g})'
        ),
        experiment='table_a1',
        figure='table_a1',
        cell=(
            theory.SOLVER,
            theory.HIDDEN,
            theory.MODULES,
            theory.WEIGHT_DECAY,
        ),
        decide=_decay_does_not_help,
    ),
    verdicts.Claim(
        id='TH-1',
        sentence=(
            'A student of matching size without error in training, under'
            ' compositional and connected support, fits every new combination,'
            " and its modules are a linear map of the teacher's."
        ),
        artefact='Section 3.2',
        experiment='theorem',
        figure='theorem',
        cell=theorem.CELL,
        decide=_fits_everything,
    ),
    verdicts.Claim(
        id='TH-1-d',
        sentence=(
            'The same student without error in training need not fit new'
            ' combinations if the support is disconnected (one output).'
        ),
        artefact='Section 3.2',
        experiment='theorem',
        figure='theorem',
        cell=theorem.CELL,
        decide=_need_not_fit,
    ),
    verdicts.Claim(
        id='TH-2',
        sentence=(
            'Each condition is needed: a student without error in training and'
            ' with a large OOD error exists if it is wider than its teacher, if'
            ' the support is disconnected, or if it is not compositional.'
        ),
        artefact='Appendix A.3',
        experiment='fig_a1',
        figure='fig_a1',
        cell=_CONSTRUCTED,
        decide=_each_condition_is_needed,
        read=lambda library, experiment: counterexamples.as_runs(),
    ),
)

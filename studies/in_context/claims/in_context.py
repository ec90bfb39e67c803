"""Claims of Kobayashi et al. (2024), and ours on the same learners.

R2 is `prediction_r2`. At laptop scale the bottleneck takes more steps than the
transformer, so last steps differ; where a claim is about how early something
happens, both are compared after as many steps.

The claims on the hyperteacher are ours. They were fixed before any of the runs
was evaluated on OOD tasks.
"""

from collections.abc import Iterable
import functools

import pandas as pd

from modular_hyperteacher.figures.judging import comparisons
from modular_hyperteacher.figures.judging import students
from modular_hyperteacher.figures.judging import verdicts
from modular_hyperteacher.figures.library import data
from modular_hyperteacher.figures.library import pick
from modular_hyperteacher.figures.paper import model_bars
from modular_hyperteacher.studies.in_context import identities
from modular_hyperteacher.studies.in_context import reference_lines
from modular_hyperteacher.studies.in_context.claims import fuzzy_logic

_R2, _DECODING = 'prediction_r2', 'decoding_r2'
VANILLA, BOTTLENECK = MODELS = 'transformer', 'hypernetwork_transformer'
GRADIENTS = 'nonlinear_hypernetwork'
_STEPS = 'training.num_outer_steps'
# Stages of a transformer's training: when its latent is not yet decodable, and
# from when on its OOD R2 stands still, according to the paper.
_EARLY, _STILL = 0.1, 0.2
# Differences that count as none.
_SAME_R2 = 0.03
_NO_GROWTH = 0.01
# Fields in which the hyperteacher's runs differ, by way of inference.
_HOW_TRAINED = (
    _STEPS,
    'training.meta_batch_size',
    'training.evaluate_every',
    'training.num_evaluation_tasks',
    'task.num_query',
)


def _sample(
    frame: pd.DataFrame,
    model: str,
    support: str = 'ring_chords',
    split: str = 'ood',
    metric: str = _R2,
) -> comparisons.Sample:
  cell = {comparisons.MODEL: model, students.SUPPORT: support}
  return comparisons.sample(frame, cell, split, metric)


def _at(
    curves: pd.DataFrame, step: int | None, model: str, *which: str
) -> comparisons.Sample:
  """Returns a metric after some steps; without a step, an empty sample."""
  frame = curves[curves['step'] == step].assign(kind='last')
  trained = _sample(frame, model, *which)
  return trained.named(f'{trained.name} after {step or 0:,} steps')


def _step_after(curves: pd.DataFrame, fraction: float) -> int | None:
  """Returns the first evaluation after a fraction of vanilla's training."""
  cell = {comparisons.MODEL: VANILLA, students.SUPPORT: 'ring_chords'}
  rows = pick.rows(curves, cell)
  steps = rows['step'][rows['step'] >= fraction * rows[_STEPS]]
  return None if steps.empty else int(steps.min())


def _last_step(curves: pd.DataFrame, support: str, model: str) -> int | None:
  cell = {comparisons.MODEL: model, students.SUPPORT: support}
  steps = pick.rows(curves, cell)['step']
  return None if steps.empty else int(steps.max())


def _bottleneck_above(
    frame: pd.DataFrame, split: str
) -> comparisons.Comparisons:
  vanilla, bottleneck = (_sample(frame, model, split=split) for model in MODELS)
  return [(bottleneck > vanilla).across(_STEPS)]


def _more_than_a_mix(frame: pd.DataFrame) -> comparisons.Comparisons:
  table = reference_lines.MEASURED['in_context'].load()
  point = {'task_support': 'ring_chords', 'split': 'ood', 'predictor': 'mix'}
  vanilla, bottleneck = (_sample(frame, model) for model in MODELS)
  mix = comparisons.Sample(
      name='best linear mix of training functions',
      values=pick.rows(table, point).set_index('seed')['r2'],
      frame=vanilla.frame.iloc[:0],  # It is computed, not trained.
      cell={},
      split='ood',
      metric=_R2,
  )
  return [(bottleneck > mix).across(_STEPS), (mix > vanilla).across(_STEPS)]


def _decodable_earlier(curves: pd.DataFrame) -> comparisons.Comparisons:
  step = _step_after(curves, _EARLY)
  vanilla, bottleneck = (
      _at(curves, step, model, 'ring_chords', 'ood', _DECODING)
      for model in MODELS
  )
  return [(bottleneck - vanilla > 0.2).across(_STEPS)]


def _does_not_grow(curves: pd.DataFrame) -> comparisons.Comparisons:
  early = _step_after(curves, _STILL)
  last = _last_step(curves, 'ring_chords', VANILLA)
  at = functools.partial(_at, curves)
  (ood, ood_later), (seen, seen_later) = (
      [at(step, VANILLA, 'ring_chords', split, _R2) for step in (early, last)]
      for split in ('ood', 'test')
  )
  return [ood - ood_later > -_NO_GROWTH, seen_later > seen]


def _fails_on_unrelated(frame: pd.DataFrame) -> comparisons.Comparisons:
  vanilla, bottleneck = (
      _sample(frame, model, split='unrelated') for model in MODELS
  )
  return [bottleneck < 0.0, (vanilla > bottleneck).across(_STEPS)]


def _needs_none(frame: pd.DataFrame) -> comparisons.Comparisons:
  ring, triangles = (_sample(frame, VANILLA, s) for s in ('ring', 'triangles'))
  return [ring - triangles > -_SAME_R2, triangles - ring > -_SAME_R2]


def _more_pairs_help(curves: pd.DataFrame) -> comparisons.Comparisons:
  """After as many steps as the run on fewer pairs took.

  If the other run goes on, its learning rate is still higher there, which does
  not favour the claim.
  """
  step = _last_step(curves, 'ring', BOTTLENECK)
  more, fewer = (
      _at(curves, step, BOTTLENECK, support, 'ood', _R2)
      for support in ('ring_chords', 'ring')
  )
  return [(more > fewer).across(_STEPS)]


def _infers_better(
    frame: pd.DataFrame, higher: str, lower: Iterable[str]
) -> comparisons.Comparisons:
  """Compares OOD accuracy on the hyperteacher, with compositional support."""
  given = {students.SUPPORT: 'random'}
  for best in students.widths(frame, higher, given):
    for model in lower:
      for other in students.widths(frame, model, given):
        better = comparisons.better(frame, [(best, other)])
        yield from (comparison.across(*_HOW_TRAINED) for comparison in better)


def read_with_figure_3b(library: data.Library, experiment: str) -> pd.DataFrame:
  """Returns the runs in context and Figure 3B's of this preset, as `Read`."""
  own = library.values(experiment)
  preset = str(own['preset'].iloc[0]) if len(own) else None
  frames = [own, library.values('fig3b', preset)]
  with_rows = [frame for frame in frames if len(frame)] or frames[:1]
  return pd.concat(with_rows, ignore_index=True)


_claim = functools.partial(
    verdicts.Claim,
    figure='in_context',
    cell=model_bars.CELL,
    models=MODELS,
)


def _ours(
    id_: str, sentence: str, higher: str, lower: tuple[str, ...]
) -> verdicts.Claim:
  return verdicts.ours(
      id_,
      sentence,
      'in_context_hyperteacher',
      functools.partial(_infers_better, higher=higher, lower=lower),
      cell=model_bars.CELL,
      read=read_with_figure_3b,
      models=(higher, *lower),
  )


CLAIMS = (
    _claim(
        'IC-1',
        'Trained on 12 of 15 pairs of modules, a transformer with a bottleneck'
        ' has a higher R2 on the other pairs than a plain transformer.',
        artefact='Kobayashi et al. (2024), Figure 2A',
        compare=functools.partial(_bottleneck_above, split='ood'),
    ),
    _claim(
        'IC-1x',
        "Ours, not the paper's: on these pairs the transformer with a"
        ' bottleneck has a higher R2 than the best linear mix of training'
        ' functions, and the plain transformer a lower one.',
        artefact=verdicts.OURS,
        compare=_more_than_a_mix,
    ),
    _claim(
        'IC-2',
        'On pairs of modules seen in training, the plain transformer has the'
        ' larger error, each after all of its own steps.',
        artefact='Kobayashi et al. (2024), Figure 3',
        compare=functools.partial(_bottleneck_above, split='test'),
    ),
    _claim(
        'IC-3',
        'The latent of tasks with new pairs can be decoded linearly (R2 above'
        ' 0.7) from the residual streams of both transformers.',
        artefact='Kobayashi et al. (2024), Figure 2B',
        compare=lambda frame: [
            _sample(frame, model, metric=_DECODING) > 0.7 for model in MODELS
        ],
    ),
    _claim(
        'IC-4',
        'The bottleneck makes latents decodable much earlier: at the first'
        " evaluation after a tenth of the plain transformer's training, R2 of"
        ' decoding is higher by more than 0.2.',
        artefact='Kobayashi et al. (2024), Figure 2B',
        compare=_decodable_earlier,
        read=data.Library.curves,
    ),
    _claim(
        'IC-5',
        "Over the last four fifths of its training, the plain transformer's R2"
        f' on new pairs grows by less than {_NO_GROWTH:g}, although that on'
        ' seen pairs grows.',
        artefact='Kobayashi et al. (2024), Figures 2A and 3',
        compare=_does_not_grow,
        read=data.Library.curves,
        models=(VANILLA,),
    ),
    _claim(
        'IC-6',
        'On tasks whose modules are not those of training, the transformer'
        ' with a bottleneck fails (R2 below 0), and the plain transformer has'
        ' a higher R2.',
        artefact='Kobayashi et al. (2024), Figure 2C',
        compare=_fails_on_unrelated,
    ),
    _claim(
        'IC-7',
        'With a bottleneck, R2 on new pairs is higher if training connects all'
        ' modules.',
        artefact='Kobayashi et al. (2024), Figure 2D',
        compare=lambda frame: [
            _sample(frame, BOTTLENECK, 'ring')
            > _sample(frame, BOTTLENECK, 'triangles')
        ],
        models=(BOTTLENECK,),
    ),
    _claim(
        'IC-8',
        "The plain transformer's R2 on new pairs changes by less than"
        f' {_SAME_R2:g} if training does not connect all modules.',
        artefact='Kobayashi et al. (2024), Figure 2D',
        compare=_needs_none,
        models=(VANILLA,),
    ),
    _claim(
        'IC-9',
        'With a bottleneck, training on 12 pairs of modules leads to a higher'
        ' R2 on new pairs than training on 6, after as many steps.',
        artefact='Kobayashi et al. (2024), Figures 2A and 2D',
        compare=_more_pairs_help,
        read=data.Library.curves,
        models=(BOTTLENECK,),
    ),
    fuzzy_logic.exact(
        'IC-10',
        'A layer of linear attention can run a linear hypernetwork: the'
        ' construction differs from it by rounding only (relative error below'
        f' {fuzzy_logic.EXACT:g}).',
        'Kobayashi et al. (2024), Appendix A',
        'in_context',
        identities.CONSTRUCTION,
    ),
    _ours(
        'IB-1',
        'on the hyperteacher, a transformer with a bottleneck reaches a higher'
        ' OOD accuracy than a plain one, with compositional support.',
        BOTTLENECK,
        (VANILLA,),
    ),
    _ours(
        'IB-2',
        'on the hyperteacher, the nonlinear hypernetwork, which adapts by'
        ' gradients, reaches a higher OOD accuracy than both transformers,'
        ' with compositional support.',
        GRADIENTS,
        MODELS,
    ),
)

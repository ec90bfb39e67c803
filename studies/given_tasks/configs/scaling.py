"""Does a network that is given the task recompose modules if it is large?

Redhardt et al., "Scaling can lead to compositional generalization" (2025): a
plain MLP gets a code of the task with every input of a hyperteacher with graded
modules, and is trained on many combinations at once. Sweeps: the combinations
in training (sg_support), their share (sg_data), the size of the network for six
codes (sg_model), and a decoder-only transformer by that share (sg_transformer).
Published R2 on new combinations of the largest MLP: 0.95 to 1.00.

'laptop' has 8 modules, inputs, hidden units and outputs, a network of 3 x 128
units and 3,000 steps. A run of five seeds takes 27 s of one core, one of the
transformer (2 blocks of width 32) 80 s: 31 minutes in all. The disconnected
support splits modules into halves, which leave 28 masks, as many as its control
'random'. (As published, with 16 modules, it isolates a single one.) Published
transformers saw each module equally often; ours see random combinations, as the
MLPs do that they are compared with.

  python -m modular_hyperteacher.main --config=scaling
  python figures/make_all.py --only=sg_support,sg_data,sg_model,sg_transformer
"""

from collections.abc import Iterator, Mapping
from typing import Any

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import sweeps
from modular_hyperteacher.studies.given_tasks import listed_splits
from modular_hyperteacher.studies.given_tasks.configs import blocks as multitask
from modular_hyperteacher.tasks import encodings
from modular_hyperteacher.tasks.supports import combinations

CODES = list(encodings.ENCODINGS)
# (M, K) -> shares that are held out.
_Shares = dict[tuple[int, int], tuple[float, ...]]
_LAPTOP_SHARES: _Shares = {
    (8, 2): (0.25, 0.5, 0.75),
    (8, 3): (0.25, 0.5, 0.75, 0.9),
    (12, 3): (0.5, 0.75, 0.9, 0.95),
}
_PAPER_SHARES: _Shares = {
    (num_modules, max_active): (0.125, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99)
    for num_modules in (8, 16, 24, 32)
    for max_active in range(2, 8)
}
# Those of the transformer, which is compared with the MLP at each.
_LAPTOP_FEWER: _Shares = {
    (8, 2): (0.25, 0.5, 0.75),
    (8, 3): (0.5, 0.75, 0.9),
    (12, 3): (0.75, 0.9, 0.95),
}
_PAPER_FEWER: _Shares = {
    size: shares[3:] for size, shares in _PAPER_SHARES.items() if size[1] > 3
}


def get_config(preset: str = 'laptop') -> experiment.Config:
  """Returns the config of one preset: 'smoke', 'laptop' or 'paper'."""
  size = presets.choose(preset, smoke=8, laptop=8, paper=16)
  model = multitask.model(preset)
  return experiment.make(
      'scaling',
      preset,
      _sweep(preset, size, model),
      task={
          'name': 'graded_hyperteacher',
          # M, and K: how many of them a task combines at most.
          'num_modules': size,
          'max_active': 3,
          # See `listed_splits.draw`.
          'task_support': 'random',
          # Share of the combinations that is held out.
          'fraction_ood': 0.25,
          # How the task is written down; see `encodings`.
          'encoding': 'identity',
          'input_dim': size,
          'output_dim': size,
          'teacher_hidden_dim': size,
          # Examples of the code 'fewshot'.
          'num_support': 50 if preset == 'paper' else 16,
          # Examples per task.
          'num_query': 16,
      },
      models={
          multitask.NAME: model,
          multitask.TRANSFORMER: multitask.transformer(preset, size),
      },
      training=experiment.training(
          **presets.choose(
              preset,
              smoke=experiment.SMOKE,
              laptop={
                  # Not those on which choices were made (docs/trials.md).
                  'seeds': (4, 5, 6, 7, 8),
                  'num_outer_steps': 3000,
                  'meta_batch_size': 32,
                  'num_evaluation_tasks': 512,
              },
              paper={
                  'seeds': (1, 2, 3),
                  'num_outer_steps': 300_000,
                  'evaluate_every': 10_000,
              },
          )
      ),
  )


def _sweep(
    preset: str, size: int, model: Mapping[str, Any]
) -> list[sweeps.Grid]:
  """Returns the grids, all with the same axes, so that they share runs."""
  usual = {
      'task_support': ['random'],
      'num_modules': [size],
      'max_active': [3],
      'fraction_ood': [0.25],
      'encoding': ['identity'],
      'hidden_dim': [model['hidden_dim']],
      'num_hidden': [model['num_hidden']],
  }

  def grid(**axes: list[Any]) -> sweeps.Grid:
    return dict(model=[multitask.NAME], **usual | axes)

  def of_transformer(**axes: list[Any]) -> sweeps.Grid:
    shared = {k: v for k, v in usual.items() if k not in model}
    return dict(model=[multitask.TRANSFORMER], **shared | axes)

  if preset == 'paper':
    supports = [grid(task_support=list(listed_splits.RULES))]
    shares, fewer = _PAPER_SHARES, _PAPER_FEWER
    widths = [128, 256, 512, 1024, 2048]
  else:
    compositional = [s for s in listed_splits.RULES if s != 'disconnected']
    supports = [
        grid(task_support=compositional),
        grid(task_support=['random', 'disconnected'], fraction_ood=[0.7]),
    ]
    shares, fewer = _LAPTOP_SHARES, _LAPTOP_FEWER
    widths = [32 if preset == 'laptop' else 4, model['hidden_dim']]
  return [
      *supports,
      *(grid(**axes) for axes in _data(shares)),
      grid(encoding=CODES, hidden_dim=widths, num_hidden=[2, 4]),
      *(of_transformer(**axes) for axes in _data(fewer)),
  ]


def _data(shares: _Shares) -> Iterator[dict[str, list[Any]]]:
  """Yields axes per (M, K), of the shares that can connect all modules.

  A mask adds up to K - 1 modules to those that are connected.
  """
  for (num_modules, max_active), fractions in shares.items():
    total = combinations.num_masks(num_modules, max_active)
    connected = [
        fraction
        for fraction in fractions
        if (total - int(total * fraction)) * (max_active - 1) >= num_modules - 1
    ]
    yield {
        'num_modules': [num_modules],
        'max_active': [max_active],
        'fraction_ood': connected,
    }

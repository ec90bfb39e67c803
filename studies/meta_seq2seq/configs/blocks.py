"""The blocks of meta sequence-to-sequence learning.

Values are those of Lake (2019) and, where it says nothing, of the released
code. One episode makes one step. 'laptop' takes networks of a third of the
width, which learn faster with a higher learning rate and little dropout. The
loss stays on a plateau for thousands of steps until the network finds out how
to use its memory; the learning rate must not decay before. 'smoke' takes a few
steps of tiny networks.
"""

from typing import Any

from modular_hyperteacher.configs.blocks import experiment
from modular_hyperteacher.configs.blocks import presets
from modular_hyperteacher.experiments import sweeps

# The published network and its lesions.
META = ('meta_seq2seq', 'no_support_loss', 'no_decoder_attention')


def blocks(
    preset: str,
    task: experiment.Block,
    *,
    num_outer_steps: int = 5000,
    dropout_rate: float = 0.1,
    learning_rate: float = 2e-3,
    decay_after: float = 0.8,
) -> dict[str, Any]:
  """Returns the task, models and training of a preset.

  The number of steps is that at laptop scale. Dropout and learning rate, which
  is lower after a share of the steps, are those of networks that are smaller
  than the published ones.
  """
  scale = presets.choose(
      preset,
      smoke=experiment.SMOKE | {'num_evaluation_tasks': 4},
      laptop={'num_outer_steps': num_outer_steps, 'num_evaluation_tasks': 64},
      paper={
          'num_outer_steps': 10_000,
          'num_evaluation_tasks': 64,
          'seeds': tuple(range(2020, 2025)),
      },
  )
  networks = _networks()
  if preset != 'paper':
    small = {
        'hidden_dim': 64 if preset == 'laptop' else 8,
        'dropout_rate': dropout_rate,
        'outer': {'learning_rate': learning_rate, 'decay_after': decay_after},
    }
    networks = {name: presets.merge(n, small) for name, n in networks.items()}
  return {
      'task': task,
      'models': networks,
      'training': experiment.training(**scale | {'meta_batch_size': 1}),
      'log_every': 100 if preset == 'laptop' else None,
  }


def scan_task(
    split: str, meanings: str, num_extra: int = 0, **fields: Any
) -> experiment.Block:
  """Sections 4.3 to 4.6; see `scan_episodes.py`."""
  return {
      'name': 'scan',
      # What is tested: 'add_jump', 'around_right' or 'length'.
      'split': split,
      # What changes between episodes: 'permuted' or 'extended'; 'fixed' or
      # 'aligned' for a standard network.
      'meanings': meanings,
      'num_support': 20,
      'num_query': 20,
      # Words beyond those of SCAN, and as many actions.
      'num_extra': num_extra,
      # Longest: any command; training queries; training support sets.
      'max_actions': 48,
      'max_query_actions': 48,
      'max_support_actions': 48,
      **fields,
  }


def limit_actions(preset: str, number: int) -> experiment.Block:
  """Returns task fields that leave out commands of more actions.

  The published scale has them all.
  """
  fields = ('max_actions', 'max_query_actions', 'max_support_actions')
  return {} if preset == 'paper' else dict.fromkeys(fields, number)


def standard_grid(
    meanings: str = 'fixed', num_extra: int = 0, **axes: Any
) -> sweeps.Grid:
  """Returns the grid of a standard network, trained on batches of 40 rows."""
  return dict(
      model=['seq2seq'],
      meanings=[meanings],
      num_extra=[num_extra],
      num_support=[0],
      num_query=[40],
      **axes,
  )


def _networks() -> dict[str, experiment.Block]:
  """Returns the published networks."""
  meta = _network('meta_seq2seq') | {
      # False: the decoder sees the query's last context, and nothing else.
      'use_decoder_attention': True
  }
  no_support_loss = {'outer': {'support_loss': False}}
  return {
      'meta_seq2seq': meta,
      'no_support_loss': presets.merge(meta, no_support_loss),
      'no_decoder_attention': meta | {'use_decoder_attention': False},
      'seq2seq': presets.merge(_network('seq2seq'), no_support_loss),
  }


def _network(name: str) -> experiment.Block:
  return {
      'name': name,
      'hidden_dim': 200,
      'num_layers': 2,
      'dropout_rate': 0.5,
      # False lets the decoder's attention see padding, as the released code.
      'mask_padding': True,
      'outer': {
          'learning_rate': 1e-3,
          # Share of the steps after which it is a tenth of that.
          'decay_after': 0.5,
          'decay_factor': 0.1,
          # Whether to reset Adam's moments at the decay.
          'reset_at_decay': True,
          # Norms to clip: the decoder's gradient, and all others'.
          'clip_norm': 50.0,
          # Whether to predict the support set, too.
          'support_loss': True,
      },
  }

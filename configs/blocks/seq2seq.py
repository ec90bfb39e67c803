"""Blocks that the configs of meta sequence-to-sequence learning share.

Values are those of Lake (2019) and, where it says nothing, of the released
code. One episode makes one step.
"""

import ml_collections

from configs.blocks import common

# The published network and its lesions.
META = ('meta_seq2seq', 'no_support_loss', 'no_decoder_attention')


def experiment(
    name: str, preset: str, task: ml_collections.ConfigDict
) -> common.Config:
  """Returns a config with these blocks, at the published scale."""
  config = common.experiment(
      name,
      preset,
      task=task,
      models=ml_collections.ConfigDict({
          'meta_seq2seq': _meta_seq2seq(),
          'no_support_loss': _meta_seq2seq(support_loss=False),
          'no_decoder_attention': _meta_seq2seq(use_decoder_attention=False),
          'seq2seq': _network('seq2seq', support_loss=False),
      }),
      training=common.training(num_outer_steps=10_000, num_seeds=5),
  )
  config.training.update({
      # Episodes per step.
      'meta_batch_size': 1,
      # Steps between evaluations; fresh episodes of each at which.
      'evaluate_every': 1000,
      'num_evaluation_tasks': 64,
  })
  return config


def mutual_exclusivity_task() -> ml_collections.ConfigDict:
  """Section 4.2."""
  return ml_collections.ConfigDict({
      'name': 'mutual_exclusivity',
      # Different queries of an episode.
      'num_query': 20,
  })


def scan_task(
    split: str, meanings: str, num_extra: int = 0
) -> ml_collections.ConfigDict:
  """Sections 4.3 to 4.6; see `seq2seq/scan_episodes.py`."""
  return ml_collections.ConfigDict({
      'name': 'scan',
      # What is tested: 'add_jump', 'around_right' or 'length'.
      'split': split,
      # What changes between episodes: 'permuted' or 'extended'; 'fixed' or
      # 'aligned' for a standard network.
      'meanings': meanings,
      'num_support': 20,
      'num_query': 20,
      # Words, and actions, that SCAN has not.
      'num_extra': num_extra,
      # Of any command; of training queries; of training support sets.
      'max_actions': 48,
      'max_query_actions': 48,
      'max_support_actions': 48,
  })


def standard_axes(meanings: str = 'fixed', num_extra: int = 0) -> tuple:
  """Returns the axes of a standard network, trained on batches of 40 rows."""
  return (
      ('model', ('seq2seq',)),
      ('task.meanings', (meanings,)),
      ('task.num_extra', (num_extra,)),
      ('task.num_support', (0,)),
      ('task.num_query', (40,)),
  )


def scale(
    config: common.Config,
    num_outer_steps: int = 5000,
    decay_after: float = 0.8,
) -> None:
  """Scales a config from the published to its preset's scale.

  'laptop' takes networks of a third of the width, which learn faster with a
  higher learning rate and little dropout. The loss stays on a plateau for
  thousands of steps until the network finds out how to use its memory; the
  learning rate must not decay before. 'smoke' takes a few steps of tiny ones.

  Args:
    config: at the published scale.
    num_outer_steps: of the laptop preset.
    decay_after: share of its steps after which the learning rate is lower.
  """
  if config.preset == 'paper':
    return
  for model in config.models.values():
    model.update({'hidden_dim': 64, 'dropout_rate': 0.1})
    model.outer.update({'learning_rate': 2e-3, 'decay_after': decay_after})
  config.training.update({
      'seeds': config.training.seeds[:3],
      'num_outer_steps': num_outer_steps,
  })
  if config.preset == 'smoke':
    for model in config.models.values():
      model.hidden_dim = 8
    config.training.update({
        'seeds': (2020,),
        'num_outer_steps': 4,
        'evaluate_every': 4,
        'num_evaluation_tasks': 4,
    })
    config.execution.log_every = 2


def limit_actions(config: common.Config, number: int) -> None:
  """Leaves out commands of more actions, below the published scale."""
  if config.preset != 'paper':
    config.task.update(
        dict.fromkeys(
            ('max_actions', 'max_query_actions', 'max_support_actions'), number
        )
    )


def _meta_seq2seq(
    support_loss: bool = True, use_decoder_attention: bool = True
) -> ml_collections.ConfigDict:
  block = _network('meta_seq2seq', support_loss)
  # False: the decoder sees the query's last context, and nothing else.
  block.use_decoder_attention = use_decoder_attention
  return block


def _network(name: str, support_loss: bool) -> ml_collections.ConfigDict:
  return ml_collections.ConfigDict({
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
          # Whether Adam starts anew then.
          'reset_at_decay': True,
          # Of the decoder's gradient, and of all others'.
          'clip_norm': 50.0,
          # Whether the support set is asked, too.
          'support_loss': support_loss,
      },
  })

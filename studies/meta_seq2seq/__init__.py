"""Meta sequence-to-sequence learning (Lake, 2019): the second system.

Instead of adapting by gradient steps, the network reads a task's support set
into a memory. Each episode gives words new meanings, which only the support set
reveals. The bilevel system shares everything but the training step: seeds,
devices, checkpoints, results, figures.

Shape legend, in addition to that of `tasks/base.py`:

  E  evaluation episodes            T  tokens of a sequence, EOS included
  N  rows, i.e. pairs of sequences  V  symbols of a vocabulary
  I  items of the support set       H  hidden units
"""

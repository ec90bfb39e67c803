"""Meta sequence-to-sequence learning (Lake, 2019): the second system.

A network is not adapted to a task by gradient steps, but reads the task's
support set into a memory. Each episode gives words new meanings, so that they
can only be known from the support set. What is shared with the bilevel system
is the outer loop around it: seeds, devices, checkpoints, results, figures.

Shape legend, beside that of `tasks/base.py`:

  E  episodes that are evaluated    T  tokens of a sequence, the end included
  N  rows, i.e. pairs of sequences  V  symbols of a vocabulary
  I  items of the support set       H  hidden units
"""

"""In-context learning: the third system.

A transformer reads the examples of a task as a sequence and predicts the next
target in one forward pass. It takes one gradient step per batch of fresh tasks;
there is no inner loop. Tasks are those of the bilevel system. Everything around
the training step is shared with it: seeds, devices, checkpoints, results.

Shape legend, in addition to that of `tasks/base.py`:

  T  tokens of a sequence           A  attention heads
  E  embedding                      K  features of a head
"""

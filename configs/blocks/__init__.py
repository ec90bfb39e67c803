"""Blocks that configs share: tasks, models, training, scales."""

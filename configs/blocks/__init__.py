"""Blocks that configs share: tasks, models and training of each preset."""

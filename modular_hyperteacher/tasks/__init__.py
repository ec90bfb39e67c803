"""Worlds: distributions of tasks that share modules."""

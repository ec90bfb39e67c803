"""Distributions of tasks that share modules."""

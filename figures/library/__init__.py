"""Finished runs, as tables."""

"""Builds the objects that a config names."""

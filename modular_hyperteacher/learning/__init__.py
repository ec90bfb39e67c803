"""Bilevel learning: inner and outer loop, evaluation, compiled programs."""

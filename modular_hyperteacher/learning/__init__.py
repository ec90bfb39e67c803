"""Bilevel learning: inner loop, outer loop, evaluation, compiled programs."""

"""Bilevel learning: inner loop, outer loop, evaluation, training."""

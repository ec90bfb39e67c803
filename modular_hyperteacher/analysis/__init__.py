"""Analyses of trained models: alignment, decoding, counterexamples."""

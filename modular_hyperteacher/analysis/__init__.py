"""What came out of training: alignment, decoding, counterexamples."""

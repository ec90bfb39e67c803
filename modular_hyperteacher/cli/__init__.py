"""The terminal: flags, progress, summary, Weights & Biases."""

"""Amortised inference, by a forward pass in place of gradient steps."""

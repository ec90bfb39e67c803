"""Host devices, multiple processes, and matrix-product precision."""

"""Host devices, several processes, precision, and the compilation cache."""

"""Host devices, several processes, precision, and how programs compile."""

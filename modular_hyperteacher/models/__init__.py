"""Meta models: what is shared between tasks, and what is adapted."""

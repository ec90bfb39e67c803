"""Networks that are given the task (Redhardt et al., 2025)."""

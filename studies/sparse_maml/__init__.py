"""Sparse-MAML: learning what to adapt (von Oswald, Zhao et al., 2021)."""

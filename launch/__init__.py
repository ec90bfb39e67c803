"""Trains sweeps on this machine, on a Ray cluster or under SLURM."""

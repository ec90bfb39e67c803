"""Sweeps over workers of this machine, a Ray cluster, or SLURM."""

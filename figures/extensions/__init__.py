"""Figures beyond the paper."""

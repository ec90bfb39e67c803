"""Measures step times and counts floating-point operations."""

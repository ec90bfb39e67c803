"""Grid worlds: preferences, goals, and mazes."""

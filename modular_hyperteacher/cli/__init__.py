"""What the terminal asks and shows: flags, progress, summary, W&B."""

"""Claims of this study."""

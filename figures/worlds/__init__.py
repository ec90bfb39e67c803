"""Single tasks, and what trained models do in them."""

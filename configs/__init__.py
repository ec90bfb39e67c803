"""One config per figure or table: `get_config(preset)`."""

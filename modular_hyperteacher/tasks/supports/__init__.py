"""Which combinations of modules a student trains on and is tested on."""

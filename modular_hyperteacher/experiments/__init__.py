"""From a config to objects: the one place where names become objects."""

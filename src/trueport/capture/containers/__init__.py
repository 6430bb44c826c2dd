"""Lists, dicts, sets and generators whose content depends on the way that the model takes."""

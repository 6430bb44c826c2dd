"""Why and where a trace stops: the user's line, what starts a trace again, refusals, the user's own errors."""

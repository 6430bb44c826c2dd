"""Special functions, by series and tables."""

"""Complex numbers as pairs of real ones, through the whole graph."""

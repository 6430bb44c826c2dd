"""Whether two answers are equal: tolerances, what rounding explains and what it does not, eager as the reference."""

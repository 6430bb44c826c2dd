"""What the two arms of a branch leave, made one: the join of both (a phi)."""

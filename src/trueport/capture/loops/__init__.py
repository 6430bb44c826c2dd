"""Loops of traced length: what rounds carry is found by tracing rounds until nothing new turns up (a fixpoint)."""

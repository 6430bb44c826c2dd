"""Real architectures: who they are (`names`), how they are made (`models`), and what became of them (`run`, `page`)."""

"""Which inputs are tried: sizes and values, drawn by the model and the seed alone, and how much work each is."""

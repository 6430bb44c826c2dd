"""One diagnostic per file, discovered by `trueport.diagnostics.registry`; there is no list to keep."""

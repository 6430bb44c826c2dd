"""One fix per file, discovered by `trueport.fix.registry`; there is no list to keep."""

"""Places in the user's source, and reading them. Standard library only."""

from trueport.source.place import Place, Where

__all__ = ["Place", "Where"]

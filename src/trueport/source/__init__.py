"""Places in the user's source, and reading them. Standard library only."""

from trueport.source.arms import assignments, returned_name
from trueport.source.place import Place, Where
from trueport.source.reading import columns_of, line_of
from trueport.source.roots import SourceRoots
from trueport.source.visible import visible

__all__ = ["Place", "SourceRoots", "Where", "assignments", "columns_of", "line_of", "returned_name", "visible"]

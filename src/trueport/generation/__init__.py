"""Models that write one token after the other: exported with their cache, and proven by the tokens that they write."""

from trueport.generation.exporting import GenerationFolder, export

__all__ = ["GenerationFolder", "export"]

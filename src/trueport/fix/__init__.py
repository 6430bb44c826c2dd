"""Edits of the user's source that take a finding away. Nothing here imports torch: a fix reads findings and source."""

"""Passes over the whole model, once it is made."""

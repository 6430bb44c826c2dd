"""Builtins, itertools, math and numpy, for traced numbers and containers (polyfills)."""

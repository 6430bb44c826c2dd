"""Torch's functions, operators and layers written with others (polyfills), where torch would freeze a free size."""

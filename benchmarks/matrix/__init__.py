"""Every torch, Python, lowest dependency and runtime that we say we support, tried."""

"""Settings for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# The machine is shared: how long an example takes says nothing about our code. And what fails must fail again.
settings.register_profile(
    "shared machine", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("shared machine")

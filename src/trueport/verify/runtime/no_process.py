"""The check needs a process of its own, and the machine gives none."""

from __future__ import annotations

from trueport.diagnostics.rules.tp001_usage_fault import UsageFault
from trueport.diagnostics.spelling import option, told
from trueport.errors import UsageError


def no_process(why: Exception) -> UsageError:
    """Nothing is known about the model then, and nothing is said about it."""
    said = (why.strerror if isinstance(why, OSError) else None) or why
    return UsageError(
        [
            UsageFault(
                message=f"the check needs a process of its own, and none can be started: {said}",
                fix=told(
                    "raise the limits (`ulimit -u`, `ulimit -v`, those of the container), or export unchecked with ",
                    option("verify", False),
                ),
            )
        ]
    )

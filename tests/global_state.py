"""What torch keeps for the whole process, and a test must leave as it was: the next one may depend on it."""

from __future__ import annotations

from typing import Any

import torch
import torch._dynamo.eval_frame as _eval_frame
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack


def torch_state() -> dict[str, Any]:
    return {
        "the compiler's stance": _eval_frame._stance.stance,
        "dispatch modes": [type(mode).__name__ for mode in _get_current_dispatch_mode_stack()],
        "function modes": [type(mode).__name__ for mode in _get_current_function_mode_stack()],
        "gradients": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "the dtype by default": torch.get_default_dtype(),
        "the device by default": torch.get_default_device(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "compiling": torch.compiler.is_compiling(),
        "exporting": torch.compiler.is_exporting(),
    }

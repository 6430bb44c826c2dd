"""Weights that show errors."""

from __future__ import annotations

from typing import Any

import torch

SCALE = 0.03


def add_noise(model: Any, scale: float = SCALE) -> None:
    """A fresh model hides errors: heads of zeros, scales of 1e-6 on whole branches, statistics that do nothing."""
    random = torch.Generator().manual_seed(12345)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.is_floating_point():
                weight.add_(torch.randn(weight.shape, generator=random).to(weight.dtype) * scale)
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.add_(torch.randn(buffer.shape, generator=random) * scale)
            if name.endswith("running_var"):
                buffer.mul_(1 + torch.rand(buffer.shape, generator=random) * scale)

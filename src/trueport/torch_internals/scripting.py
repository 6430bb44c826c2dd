"""What torch remembers of a module that it was given to script."""

from __future__ import annotations

from typing import Any

import torch


def class_before_script(module: torch.jit.ScriptModule) -> type[torch.nn.Module] | None:
    """The class of the module that `torch.jit.script` was given; None for one that was traced, frozen or loaded."""
    cls = getattr(getattr(module, "_concrete_type", None), "py_class", None)
    if not isinstance(cls, type) or not issubclass(cls, torch.nn.Module) or issubclass(cls, torch.jit.ScriptModule):
        return None
    return cls if cls.forward is not torch.nn.Module.forward else None


def attributes_before_script(module: torch.jit.ScriptModule) -> dict[str, Any]:
    """Its attributes as they are now, and what its class calls constants."""
    kind: Any = module._concrete_type
    values = {name: getattr(module, name) for name in kind.get_attributes()}
    return {**kind.get_constants(), **values}

"""Where the model was when it raised, or where it is now: the user's line and the submodule."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from types import FrameType

import torch

from trueport.load.stack import frames_of, is_users, user_calls, where_of
from trueport.source import Place, Where


def user_place(error: BaseException, model: torch.nn.Module | None = None) -> Place:
    """Where an exception came from: the calls in the user's code, and the module of `model` that was running."""
    running = running_module(error, model) if model is not None else None
    return Place(user_calls(error), running[0] if running else "")


def running_module(
    error: BaseException, model: torch.nn.Module
) -> tuple[str, torch.nn.Module, tuple[torch.Tensor, ...]] | None:
    """The innermost module whose `forward` was running: its path, itself, and the tensors that it was given."""
    paths = {id(module): path for path, module in model.named_modules()}
    found = None
    for frame, _ in frames_of(error):
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module) and id(owner) in paths and frame.f_code.co_name == "forward":
            given = [frame.f_locals.get(name) for name in frame.f_code.co_varnames[1 : frame.f_code.co_argcount]]
            found = paths[id(owner)], owner, tuple(value for value in given if isinstance(value, torch.Tensor))
    return found


def place_of_return(model: torch.nn.Module) -> Place | None:
    """The line of forward's `return`, where it has one and no other."""
    forward = getattr(type(model), "forward", None)  # a scripted module has none to look at
    code = getattr(inspect.unwrap(forward), "__code__", None) if callable(forward) else None
    if code is None or not is_users(code.co_filename):
        return None
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):
        return None
    returns = [node for node in ast.walk(tree) if isinstance(node, ast.Return)]
    line = first + returns[0].lineno - 1 if len(returns) == 1 else first
    return Place((Where(code.co_filename, line, code.co_qualname),))


def user_place_here() -> Place:
    """The user's calls on the running stack, outermost first, down from the model's own forward."""
    calls: list[Where] = []
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "call_eagerly":
        if is_users(frame.f_code.co_filename):
            calls.append(where_of(frame, frame.f_lasti))
        frame = frame.f_back
    return Place(tuple(reversed(calls)))

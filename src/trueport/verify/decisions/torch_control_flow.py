"""`torch.cond`, `while_loop`, `scan` and `map` of the user's own: which way they went, and how often they ran.

Torch compiles what they are given, so no probe in the user's functions would be met. They are watched from outside: a
condition is asked for its truth; a loop is run once more in plain Python, on copies, only to be counted. What the
model gets is torch's own answer, but for runs that guide the search: there torch's compiler would stumble over the
mode that measures, and nobody looks at the result.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import itertools
import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from trueport.capture.branches.higher_order import IN_PYTHON, led_elsewhere
from trueport.load.structures import flatten
from trueport.rewrite.running.probe_runtime import WATCH, DecisionKind, Site, Watcher
from trueport.torch_internals import TORCH_FOLDER

_KINDS = {
    "cond": DecisionKind.COND,
    "while_loop": DecisionKind.WHILE_LOOP,
    "scan": DecisionKind.SCAN,
    "map": DecisionKind.MAP,
    "associative_scan": DecisionKind.SCAN,
}
_OUR_FOLDER = __file__.rsplit("verify", 1)[0]


def watched_functions() -> contextlib.AbstractContextManager[None]:
    """While this lasts, the watcher of a thread is told of them; where there is none, they are as they are."""

    def lead(name: str, itself: Callable[..., Any]) -> Callable[..., Any]:
        # The names of the parameters are torch's: users pass them as keywords, too.
        signature = inspect.signature(itself)

        def watched(*args: Any, **kwargs: Any) -> Any:
            watcher, frame = WATCH.watcher, _users_frame()
            if watcher is None or frame is None:
                return itself(*args, **kwargs)
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            _tell(watcher, _site(frame, name), name, given.arguments)
            return (IN_PYTHON[name] if watcher.guides else itself)(*args, **kwargs)

        return watched

    return led_elsewhere(lead)


def _tell(watcher: Watcher, site: Site, name: str, given: dict[str, Any]) -> None:
    if name == "cond":
        _asked(watcher, site, given["pred"])
    elif name == "while_loop":
        _counted(watcher, site, given)
    else:
        xs: Any = given.get("xs")  # since torch 2.15, scan may have a length in their place
        first: Any = None if xs is None else flatten(xs, "xs")[0][0].value
        length = given["length"] if xs is None else first.shape[given.get("dim", 0)]
        for _ in watcher.rounds(site, range(length - (name == "associative_scan"))):
            pass


def _asked(watcher: Watcher, site: Site, value: Any) -> None:
    mark = watcher.mark()
    watcher.leaf(mark, value)
    watcher.decided(site, mark, value)


def _counted(watcher: Watcher, site: Site, given: dict[str, Any]) -> None:
    """The loop in plain Python. Its functions may change nothing but what they carry, so this run leaves no trace."""

    def asked(*carried: Any) -> Any:
        value = given["cond_fn"](*carried)
        _asked(watcher, site, value)
        return value

    copies = tuple(c.clone() if isinstance(c, torch.Tensor) else c for c in given["carried_inputs"])
    watcher.began(site)
    with torch.random.fork_rng(devices=[]), contextlib.suppress(Exception):  # torch will say it itself, a moment later
        IN_PYTHON["while_loop"](asked, given["body_fn"], copies)


def _users_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith((TORCH_FOLDER, _OUR_FOLDER)):
        frame = frame.f_back
    return frame


def _site(frame: FrameType, name: str) -> Site:
    """The call that a frame is in the middle of."""
    code = frame.f_code
    line, end_line, column, end_column = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None))
    line = line or frame.f_lineno
    call = _parsed(code.co_filename, line, end_line or line, column or 0, end_column or 0)
    text, numbers = (name, ()) if call is None else (_text(call, name), _numbers(call))
    return Site(code.co_filename, line, column or 0, end_line or line, code.co_qualname, _KINDS[name], text, numbers)


def _parsed(file: str, line: int, end_line: int, column: int, end_column: int) -> ast.Call | None:
    lines = [linecache.getline(file, at).encode() for at in range(line, end_line + 1)]
    lines[-1] = lines[-1][:end_column]  # columns are counted in bytes
    lines[0] = lines[0][column:]
    try:
        found = ast.parse(b"".join(lines), mode="eval").body
    except SyntaxError:
        return None
    return found if isinstance(found, ast.Call) else None


def _text(call: ast.Call, name: str) -> str:
    """What decides, where it stands in the call; else the call itself, in short."""
    first = call.args[0] if call.args else next((keyword.value for keyword in call.keywords), None)
    if first is None:
        return name
    if name == "cond":
        return ast.unparse(first)
    if name == "while_loop" and isinstance(first, ast.Lambda):
        return ast.unparse(first.body)
    return f"{ast.unparse(call.func)}({ast.unparse(first)}, ...)"


def _numbers(call: ast.Call) -> tuple[int | float, ...]:
    found = [n.value for n in ast.walk(call) if isinstance(n, ast.Constant) and type(n.value) in (int, float)]
    return tuple(signed for number in found for signed in (number, -number))  # type: ignore[operator, misc]

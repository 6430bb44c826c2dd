"""flex_attention in plain operators, as torch itself computes it where nothing is compiled."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def flex_attention_in_operators(tracing: Callable[[], bool]) -> Iterator[None]:
    """While this lasts, a trace sees matrix products, the user's score and mask functions, and a softmax.

    Eager has run before, so whoever calls flex_attention has imported it. Otherwise nothing is imported here: that
    would bring the compiler along.
    """
    public: Any = sys.modules.get("torch.nn.attention.flex_attention")
    if public is None:
        yield
        return
    kernel, uncompiled = public.flex_attention_hop, public._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG
    by_operators = sys.modules["torch._higher_order_ops.flex_attention"].math_attention

    def either(*args: Any, **kwargs: Any) -> Any:
        return (by_operators if tracing() else kernel)(*args, **kwargs)

    public.flex_attention_hop, public._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = either, True
    try:
        yield
    finally:
        public.flex_attention_hop, public._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = kernel, uncompiled

"""The two dispatch modes through which operators reach the tracer, above and below functionalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueport.torch_internals import (
    FunctionalTensor,
    FunctionalTensorMode,
    OpOverload,
    ProxySlotMode,
    symbolic_kernels,
)

if TYPE_CHECKING:
    from trueport.capture.recording.tracer import Tracer


class Functionaliser(FunctionalTensorMode):
    """Torch's functionalisation, with a look at each operator before it acts."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self._tracer = tracer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._tracer.dispatch(func, types, args, kwargs or {})

    def plainly(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        with symbolic_kernels():
            return super().__torch_dispatch__(func, types, args, kwargs)


class Recorder(ProxySlotMode):
    """Below functionalisation: sees the value-semantics operators that views and writes were turned into."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self._tracer = tracer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not isinstance(func, OpOverload) or func.namespace == "prim" or func in FunctionalTensor.metadata_fns:
            return func(*args, **kwargs)
        return self._tracer.record_functionalised(func, args, kwargs)

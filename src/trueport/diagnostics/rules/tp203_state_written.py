from trueport.diagnostics.base import Diagnostic


class StateWritten(Diagnostic):
    """`forward` changes a buffer, a parameter or a tensor attribute of the model: a counter, a cache,
    running statistics.

    ## Why
    An ONNX model has no memory between calls. Exported as it stands, the state would stay for ever what
    it was on the day of the export, and from the second call on the answers would differ from eager.

    ## Example
    ```python
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls += 1  # <- here
            return x * self.calls

    trueport.export(Counter().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    trueport.export(Counter().eval(), (torch.randn(3),), "net.onnx", state="inputs-outputs")
    ```

    ## Fix
    Say which one is meant. `state="inputs-outputs"` makes each written buffer an input and an output of
    the ONNX model: feed the output of one call into the next. `state="frozen"` starts every call from
    the state at the time of the export.
    """

    code = "TP203"
    title = "forward writes the model's own state"

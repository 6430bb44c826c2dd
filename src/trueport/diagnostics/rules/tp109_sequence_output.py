from trueport.diagnostics.base import Diagnostic, Severity


class SequenceOutput(Diagnostic):
    """forward returns a list whose length is known only when the model runs. In the ONNX model it is one
    output that holds all items: a sequence of tensors, or, for a list of Python numbers, a tensor of one
    axis. A list of pairs is two such outputs.

    ## Why
    An ONNX model has its outputs written down once, and a list of open length cannot be one output per
    item. A sequence can hold any number of tensors, also of different sizes; ONNX Runtime gives it as a
    Python list of arrays. The exported program (`program(x)`) gives the list that eager gives.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            rows = []
            for row in x:  # <- here
                rows.append(row * 2)
            return rows

    trueport.export(Net().eval(), (torch.randn(2, 3),), "net.onnx", dynamic_shapes=({0: "n"},))
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            rows = []
            for row in x:
                rows.append(row * 2)
            return torch.stack(rows)

    trueport.export(Net().eval(), (torch.randn(2, 3),), "net.onnx", dynamic_shapes=({0: "n"},))
    ```

    ## Fix
    Nothing has to be done. For a runtime that knows no sequences (TensorRT), or for code that wants one
    array, return a tensor: `torch.stack(rows)`, `torch.cat(rows)`, or `pad_sequence(rows)` with the lengths.
    """

    code = "TP109"
    title = "a list of open length is returned as an ONNX sequence"
    default_severity = Severity.NOTE

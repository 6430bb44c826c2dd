from trueport.diagnostics.base import Diagnostic


class SizeNarrowed(Diagnostic):
    """Python took a decision on a free size (`if x.shape[0] > 6:`), or an operation holds only for some of
    its values. The graph that was traced is right on one side of that decision.

    ## Why
    On the other side the exported model would give wrong values, with no error: the most common silent
    failure of exporters.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            if x.shape[0] > 6:
                return x * 2
            return -x

    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: "batch"},))
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            if x.shape[0] > 6:
                return x * 2
            return -x

    batch = torch.export.Dim("batch", min=7)
    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: batch},))
    ```

    ## Fix
    Either say that only these sizes come (`Dim("batch", min=7)`, `--dim batch=7..`), or take the
    decision out of the Python code, as with `torch.where` or `torch.clamp`.
    """

    code = "TP302"
    title = "the model only holds for a part of the declared sizes"

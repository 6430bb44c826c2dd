from trueport.diagnostics.base import Diagnostic, Severity


class SizesRelated(Diagnostic):
    """Two sizes that were declared free can only be right together: they must be equal, or one follows
    from the other. They now share a name in the exported model.

    ## Why
    Nothing is lost, eager makes the same demand. But a caller who reads two names would expect two
    independent sizes.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x, y):
            return x + y  # <- here

    a, b = torch.randn(2, 4), torch.randn(2, 4)
    trueport.export(Net().eval(), (a, b), "net.onnx", dynamic_shapes=({0: "m"}, {0: "n"}))
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x, y):
            return x + y

    a, b = torch.randn(2, 4), torch.randn(2, 4)
    trueport.export(Net().eval(), (a, b), "net.onnx", dynamic_shapes=({0: "n"}, {0: "n"}))
    ```

    ## Fix
    None is needed. Giving both axes one name says what is meant.
    """

    code = "TP303"
    title = "free sizes depend on one another"
    default_severity = Severity.NOTE

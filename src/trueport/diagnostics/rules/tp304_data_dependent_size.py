from trueport.diagnostics.base import Diagnostic


class DataDependentSize(Diagnostic):
    """A size that depends on the values of a tensor (from `nonzero`, `x[mask]`, `.item()`, `unique`) was
    used where torch has to know the number to go on: in a Python decision, or in an operation whose
    result depends on it.

    ## Why
    The size is different for each input. Any number put in its place would be the example's.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            kept = x[x > 0]
            if kept.shape[0] == 0:
                return torch.zeros(1)
            return kept.max().reshape(1)

    trueport.export(Net().eval(), (torch.randn(8),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return torch.where(x > 0, x, 0.0).max().reshape(1)

    trueport.export(Net().eval(), (torch.randn(8),), "net.onnx")
    ```

    ## Fix
    Keep the full shape and mask the values (`torch.where`), so that no decision about the count is
    needed. If the size is known to lie in a range, say so in the model: `torch._check(n > 0)`.
    """

    code = "TP304"
    title = "a size that only the data decides had to be known"

from trueport.diagnostics.base import Diagnostic


class BranchOnTensor(Diagnostic):
    """An `if`, a ternary, `and`/`or`/`not`, an `assert` or `bool(...)` asked for the value of a tensor, so
    which code runs depends on numbers that are only known when the model runs.

    ## Why
    A trace sees one arm. Keeping only that arm gives a model that is right for the example and wrong,
    without a word, for every input that takes the other one.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x * 2
            return -x

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return torch.where(x.sum() > 0, x * 2, -x)

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Fix
    Where both arms are cheap and have the same shape, compute both and choose with
    `torch.where(condition, a, b)`. Where the test only guards against bad input, remove it or move it
    out of `forward`.
    """

    code = "TP101"
    title = "Python branched on the value of a tensor"

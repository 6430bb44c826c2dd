from trueport.diagnostics.base import Diagnostic


class NumberFrozen(Diagnostic):
    """A Python number that came in as an argument was used in a place that needs one fixed value, so the
    exported model would answer for that value only.

    ## Why
    Numbers in the arguments are real inputs of the exported model, so that the caller can change them.
    Where torch needs the number itself (as a key, as an axis, as a choice in Python), it cannot stay an
    input.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x, axis: int):
            return x.sum(dim=axis)  # <- here

    trueport.export(Net().eval(), (torch.randn(3, 4), 1), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x, axis: int):
            return x.sum(dim=axis)

    trueport.export(Net().eval(), (torch.randn(3, 4), 1), "net.onnx", constants=["axis"])
    ```

    ## Fix
    If the value never changes in production, list the argument in `constants=` (`--constants axis`). If
    it does, export one model per value, or write the choice with tensor operations.
    """

    code = "TP205"
    title = "a Python number would be baked into the model"

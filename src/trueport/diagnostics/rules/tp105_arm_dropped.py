from trueport.diagnostics.base import Diagnostic, Severity


class ArmDropped(Diagnostic):
    """An arm of a branch that only raises an error, or an assertion on a tensor, is not part of the
    exported model: ONNX has no way to raise.

    ## Why
    The exported model is meant for inputs that eager accepts. On the others eager raises, and the
    exported model gives some result instead.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            if x.min() < 0:  # <- here
                raise ValueError("x must not be negative")
            return x.sqrt()

    trueport.export(Net().eval(), (torch.rand(3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x.sqrt()

    trueport.export(Net().eval(), (torch.rand(3),), "net.onnx")
    ```

    ## Fix
    Nothing has to be done. Check the inputs before the exported model where it matters.
    """

    code = "TP105"
    title = "an arm that raises is not part of the exported model"
    default_severity = Severity.NOTE

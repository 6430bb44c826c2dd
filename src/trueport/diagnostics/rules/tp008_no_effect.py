from trueport.diagnostics.base import Diagnostic, Severity


class NoEffect(Diagnostic):
    """An argument of `torch.onnx.export` was taken, and changes nothing here: it chooses among the exporters of
    torch, and trueport has one of its own.

    ## Why
    Changing `torch.onnx.export(` into `trueport.export(` is meant to be the whole migration. So arguments that
    only concern torch's exporters are no errors; but none of them is passed over in silence. An argument that
    would change the file, and cannot be honoured, is refused by its name (TP001).

    ## Example
    ```python
    trueport.export(nn.Linear(4, 4).eval(), (torch.randn(2, 4),), "net.onnx", dynamo=False)
    ```

    ## Mended
    ```python
    trueport.export(nn.Linear(4, 4).eval(), (torch.randn(2, 4),), "net.onnx")
    ```

    ## Fix
    Leave the argument out.
    """

    code = "TP008"
    title = "an argument of torch.onnx.export has no effect here"
    default_severity = Severity.NOTE

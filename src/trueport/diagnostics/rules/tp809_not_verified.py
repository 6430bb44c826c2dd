from trueport.diagnostics.base import Diagnostic, Severity


class NotVerified(Diagnostic):
    """The model was written without comparing it with eager, because `verify=False` was given, or no input
    other than the example could be found that eager accepts.

    ## Why
    An unchecked model is a hope. It is said so that nobody takes it for a checked one.

    ## Example
    ```python
    model = nn.Linear(4, 4).eval()
    trueport.export(model, (torch.randn(2, 4),), "net.onnx", verify=False)
    ```

    ## Mended
    ```python
    model = nn.Linear(4, 4).eval()
    trueport.export(model, (torch.randn(2, 4),), "net.onnx")
    ```

    ## Fix
    Leave `verify` on. Where no other input is accepted by eager, declare the values that it takes
    (`ids:BxS:i64@0..999`).
    """

    code = "TP809"
    title = "the exported model was not checked, or only on the example"
    default_severity = Severity.WARNING

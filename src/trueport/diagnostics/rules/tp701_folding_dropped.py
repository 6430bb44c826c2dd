from trueport.diagnostics.base import Diagnostic, Severity


class FoldingDropped(Diagnostic):
    """A pass that simplifies the exported model would have produced an invalid or a different model, took
    too long, or would have made the file much larger. The model before that pass was kept.

    ## Why
    Folding is a convenience and never worth a wrong model. It is told because the model is larger or
    slower than it could be, and because such a case is worth a report.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x + torch.arange(100_000_000)[:3]       # folded, this would be a constant of 800 MB

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x + torch.arange(3)

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Fix
    None is needed: the model is right as it stands.
    """

    code = "TP701"
    title = "an optimisation was not applied"
    default_severity = Severity.NOTE

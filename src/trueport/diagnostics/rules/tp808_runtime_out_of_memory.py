from trueport.diagnostics.base import Diagnostic


class RuntimeOutOfMemory(Diagnostic):
    """The runtime asked for more memory than the limit of the check.

    ## Why
    Either the model needs that much, or something in the graph grew: a tensor that eager never makes
    whole, an `Expand` that is not a view any more.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x.expand(1_500_000_000)[:3]  # <- here: a view in eager, six gigabytes in ONNX

    trueport.export(Net().eval(), (torch.randn(1),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x.expand(3)

    trueport.export(Net().eval(), (torch.randn(1),), "net.onnx")
    ```

    ## Fix
    Declare a maximum for the free size (`--dim batch=1..64`), so that larger ones are not tried. If the
    size is a common one, the line that the finding names makes a much larger tensor than in eager:
    please report it.
    """

    code = "TP808"
    title = "the exported model needs more memory than allowed"

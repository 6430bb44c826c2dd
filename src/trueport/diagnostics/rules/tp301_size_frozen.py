from trueport.diagnostics.base import Diagnostic


class SizeFrozen(Diagnostic):
    """A line of the model works for one value of a size that was declared free; with any other value the
    exported model would be wrong or refuse to run.

    ## Why
    The caller asked for a free size and would get a fixed one. Other exporters drop the request without
    a word, or print a list of constraint violations.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x.view(8, 4)  # <- here

    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: "batch"},))
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x.view(x.shape[0], 4)

    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: "batch"},))
    ```

    ## Fix
    Replace the number by the size it stands for (`x.shape[0]`), or `-1` where a reshape allows it. If
    the size is fixed in truth, do not declare it free.
    """

    code = "TP301"
    title = "a size that was declared free only holds for one value"

from trueport.diagnostics.base import Diagnostic, Severity


class SizeAssumed(Diagnostic):
    """To go on, the trace assumed something about free or data-dependent sizes that the eager model also
    needs (the two sides of an addition match, a slice lies inside its tensor), or that was confirmed by
    running other sizes.

    ## Why
    It is told because it limits the inputs for which the exported model was made. Eager refuses, or
    treats the same way, an input that breaks it.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            assert x.shape[0] % 2 == 0  # <- here: eager refuses an odd batch, too
            return x.reshape(-1, 2, x.shape[1])

    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: "batch"},))
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            assert x.shape[0] % 2 == 0
            return x.reshape(-1, 2, x.shape[1])

    pairs = torch.export.Dim("pairs")
    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: 2 * pairs},))
    ```

    ## Fix
    None is needed. Declaring the size as it is (`2 * Dim("pairs")`, a minimum, a maximum) turns the
    assumption into part of the request.
    """

    code = "TP305"
    title = "an assumption about sizes that eager makes as well"
    default_severity = Severity.NOTE

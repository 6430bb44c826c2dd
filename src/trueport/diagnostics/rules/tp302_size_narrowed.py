from trueport.diagnostics.base import Diagnostic


class SizeNarrowed(Diagnostic):
    """Python took a decision on a free size that cannot be kept open (an index into a list, a key of a
    dict, a number of pieces), so the graph that was traced is right for some of the declared sizes
    only.

    ## Why
    For the other sizes the exported model would give wrong values, with no error: the most common
    silent failure of exporters. `if x.shape[0] > 6:` is kept alive as `If`; which of two tuples comes
    first is decided by Python itself, with real numbers.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x * 2 if tuple(x.shape) > (6, 4) else x  # <- here

    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: "batch"},))
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x * 2 if x.shape[0] > 6 else x

    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: "batch"},))
    ```

    ## Fix
    Write the decision with the sizes themselves, as above. If only some sizes come, say so:
    `Dim("batch", min=7)`, `--dim batch=7..`, or a derived size such as `3 * Dim("triples")`.
    """

    code = "TP302"
    title = "the model only holds for a part of the declared sizes"

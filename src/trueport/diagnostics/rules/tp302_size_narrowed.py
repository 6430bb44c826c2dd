from trueport.diagnostics.base import Diagnostic


class SizeNarrowed(Diagnostic):
    """Python took a decision on a free size that cannot be kept open (inside a function that is written
    in C), so the graph that was traced is right for some of the declared sizes only.

    ## Why
    For the other sizes the exported model would give wrong values, with no error: the most common
    silent failure of exporters. `if x.shape[0] > 6:` is kept alive as `If`; `count` of an array decides
    inside Python's own code, with real numbers.

    ## Example
    ```python
    import array

    class Net(nn.Module):
        def forward(self, x):
            special = array.array("q", [6])
            return x * special.count(x.shape[0])  # <- here

    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: "batch"},))
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x * (x.shape[0] == 6)

    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: "batch"},))
    ```

    ## Fix
    Write the decision with the sizes themselves, as above. If only some sizes come, say so:
    `Dim("batch", min=7)`, `--dim batch=7..`, or a derived size such as `3 * Dim("triples")`.
    """

    code = "TP302"
    title = "the model only holds for a part of the declared sizes"

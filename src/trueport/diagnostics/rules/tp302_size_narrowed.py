from trueport.diagnostics.base import Diagnostic


class SizeNarrowed(Diagnostic):
    """Python took a decision on a free size that cannot be kept open (an index into a list, a key of a
    dict, a number of pieces), so the graph that was traced is right for some of the declared sizes
    only.

    ## Why
    For the other sizes the exported model would give wrong values, with no error: the most common
    silent failure of exporters. `if x.shape[0] > 6:` is kept alive as `If`; a list can only be asked
    with a real number.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x * [0.5, 2.0, 3.0][x.shape[0] % 3]  # <- here

    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: "batch"},))
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x * torch.tensor([0.5, 2.0, 3.0])[x.shape[0] % 3]

    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: "batch"},))
    ```

    ## Fix
    Write the decision as `if`/`else`, or with tensors as above. If only some sizes come, say so:
    `Dim("batch", min=7)`, `--dim batch=7..`, or a derived size such as `3 * Dim("triples")`.
    """

    code = "TP302"
    title = "the model only holds for a part of the declared sizes"

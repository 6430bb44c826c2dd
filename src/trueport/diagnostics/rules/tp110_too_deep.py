from trueport.diagnostics.base import Diagnostic


class TooDeep(Diagnostic):
    """Branches and loops lie within each other so deep that no ONNX file can hold them.

    ## Why
    An arm of an `If` and the body of a `Loop` are graphs within their node. ONNX files are read by
    protobuf, which stops at a hundred messages within each other: that is some thirty graphs. A chain of
    `elif`s, of early returns or of `break`s is written flat, whatever its length. Where something follows
    the inner branch in each of the arms around it, it cannot be.

    ## Example
    ```python
    def left(x, level):
        if x.sum() > level:
            x = right(x, level + 1) * 2
        return x

    def right(x, level):
        if x.max() > level and level < 40:  # <- here
            x = left(x, level + 1) + 1
        return x

    class Net(nn.Module):
        def forward(self, x):
            return left(x, 0)

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx", verify=False)
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            level = 0
            while x.sum() > level and level < 40:
                x, level = x * 2 + 1, level + 2
            return x

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Fix
    Write a loop, choose with `torch.where` or by an index, or leave the function early.
    """

    code = "TP110"
    title = "branches and loops lie too deep within each other"

from trueport.diagnostics.base import Diagnostic


class UnsupportedOperator(Diagnostic):
    """The model calls a torch operator that trueport cannot express in ONNX, and that torch cannot take
    apart into operators that it can.

    ## Why
    The rest of the model was traced all the same, so that one run lists every such operator with its
    line.

    ## Example
    ```python
    @torch.library.custom_op("mylib::smooth", mutates_args=())
    def smooth(x: torch.Tensor) -> torch.Tensor:
        return (x[..., 1:] + x[..., :-1]) / 2

    @smooth.register_fake
    def sizes(x):
        return x[..., 1:].clone()

    class Net(nn.Module):
        def forward(self, x):
            return smooth(x)  # <- here

    trueport.export(Net().eval(), (torch.randn(3, 3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return (x[..., 1:] + x[..., :-1]) / 2    # what the library computes, with torch's own operators

    trueport.export(Net().eval(), (torch.randn(3, 3),), "net.onnx")
    ```

    ## Fix
    Write the line with operators that ONNX has, move it out of the model, or give your own translation:
    `@trueport.op("mylib::op")` on a function that builds the ONNX nodes.
    """

    code = "TP401"
    title = "no ONNX translation is known for this operator"

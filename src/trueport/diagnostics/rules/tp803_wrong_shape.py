from trueport.diagnostics.base import Diagnostic


class WrongShape(Diagnostic):
    """On a checked input, an output of the ONNX model has another shape, or another rank, than eager's.

    ## Why
    A size was frozen or computed wrongly on the way, or a translation returns another shape than the
    operator. Whoever uses the model would read the wrong elements.

    ## Example
    ```python
    @torch.library.custom_op("shop::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x):
        return torch.empty_like(x)

    @trueport.op("shop::twice")
    def translate(op, x):
        return op.Unsqueeze(op.Mul(x, 2.0), [0])     # one axis more than eager gives

    class Net(nn.Module):
        def forward(self, x):
            return twice(x)

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Mended
    ```python
    @torch.library.custom_op("shop::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x):
        return torch.empty_like(x)

    @trueport.op("shop::twice")
    def translate(op, x):
        return op.Mul(x, 2.0)

    class Net(nn.Module):
        def forward(self, x):
            return twice(x)

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Fix
    The finding says on which input. Mend the translation if it is yours; otherwise this is a bug of
    trueport or of the runtime: please report it with the model. Nothing was written.
    """

    code = "TP803"
    title = "the exported model returns another shape than eager"

from trueport.diagnostics.base import Diagnostic


class WrongValues(Diagnostic):
    """On a checked input, the ONNX model and eager differ by more than their dtype can explain.

    ## Why
    This is what the check is for. It was tried with other sizes and other values than the example's,
    and one of them told the two apart. Nothing was written.

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
        return op.Mul(x, 2.001)                      # not what eager computes

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
    If the model is unstable by nature (a sort of nearly equal values, `argmax` of ties, a division by
    almost zero), the difference is in the model, and a wider range of inputs shows it: declare the
    values with `@low..high`. Mend the translation if it is yours. Otherwise it is a bug of trueport or
    of the runtime: please report it with the finding.
    """

    code = "TP805"
    title = "the exported model returns other values than eager"

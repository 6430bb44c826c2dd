from trueport.diagnostics.base import Diagnostic


class WrongDtype(Diagnostic):
    """An output of the ONNX model has another dtype than eager's.

    ## Why
    torch and ONNX promote mixed operands by different rules, and a cast was missed on the way; or the
    fake kernel of a custom operator promises another dtype than its real kernel returns. Values may look
    right and overflow later.

    ## Example
    ```python
    @torch.library.custom_op("shop::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x.double() * 2            # the fake kernel below promises x's own dtype

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
    Look first at the fake kernels of your own operators: they have to return what the real ones do.
    Otherwise this is a bug of trueport or of a translation: please report it with the model.
    """

    code = "TP804"
    title = "the exported model returns another dtype than eager"

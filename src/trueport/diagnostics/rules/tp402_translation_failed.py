from trueport.diagnostics.base import Diagnostic


class TranslationFailed(Diagnostic):
    """A translation to ONNX exists for this operator, and it raised an error for these arguments.

    ## Why
    The operator is known, this way of calling it is not: an option or a dtype that the translation does
    not handle. Eager runs the call, so the model is not at fault. Nothing was written.

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
        raise NotImplementedError("not for this dtype")

    class Net(nn.Module):
        def forward(self, x):
            return twice(x)  # <- here

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
    The finding shows the error, the arguments, and whose translation it is. Where it is your own, mend
    it. Where it is trueport's, this is a limit of trueport: please report it; until then, call the
    operator without its rarer options, or override the translation with `@trueport.op(...)`.
    """

    code = "TP402"
    title = "the translation of an operator failed"

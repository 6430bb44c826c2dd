from trueport.diagnostics.base import Diagnostic


class TranslationFailed(Diagnostic):
    """A translation to ONNX exists for this operator, and it raised an error for these arguments.

    ## Why
    The operator is known, this way of calling it is not: an option or a dtype that the translation does
    not handle. No part of the model was written.

    ## Example
    ```python
    @torch.library.custom_op("shop::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x):
        return torch.empty_like(x)

    @trueport.op("shop::twice")
    def translate(x):
        raise NotImplementedError("not for this dtype")

    class Net(nn.Module):
        def forward(self, x):
            return twice(x)

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x * 2

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Fix
    The finding shows the error and the arguments. Try the operator without its rarer options, or
    override the translation with `@trueport.op(...)`. If the translation is trueport's own, it is a
    bug: please report it.
    """

    code = "TP402"
    title = "the translation of an operator failed"

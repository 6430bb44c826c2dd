from trueport.diagnostics.base import Diagnostic


class RuntimeCannotLoad(Diagnostic):
    """The model was made, and ONNX Runtime refused to load it: an operator without a kernel for this
    dtype, a type that does not fit, a custom domain that was not registered.

    ## Why
    A model that does not load is of no use, so it counts as a failed export. It is found here, in a
    process of its own, and not on the device.

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
        return op.custom("shop.kernels", "Twice", x)     # an operator that this runtime does not have

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
    The finding shows the runtime's message and, where the runtime names the node, the line. Write that
    line with operators and dtypes that the runtime has; if your own runtime brings the operator, export
    with `verify=False`.
    """

    code = "TP801"
    title = "ONNX Runtime cannot load the exported model"

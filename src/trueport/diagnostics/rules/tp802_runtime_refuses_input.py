from trueport.diagnostics.base import Diagnostic


class RuntimeRefusesInput(Diagnostic):
    """The exported model loads, but the runtime raised an error on an input on which eager gives an
    answer.

    ## Why
    Often a size was written into the graph by a translation (a `Reshape` to a fixed shape): the example
    runs, and another size does not. Or the runtime itself does not handle the case, such as an empty
    tensor; that is a warning, because the runtime says so aloud.

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
        return op.Reshape(op.Mul(x, 2.0), [8, 4])    # the example's sizes, written into the graph

    class Net(nn.Module):
        def forward(self, x):
            return twice(x)  # <- here

    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: "batch"},))
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

    trueport.export(Net().eval(), (torch.randn(8, 4),), "net.onnx", dynamic_shapes=({0: "batch"},))
    ```

    ## Fix
    The finding gives the input that fails and the line of the node. If such inputs never come, declare a
    minimum or a maximum (`Dim("batch", min=1)`); otherwise please report it with the model.
    """

    code = "TP802"
    title = "ONNX Runtime refuses an input that eager accepts"

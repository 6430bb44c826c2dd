from trueport.diagnostics.base import Diagnostic


class RuntimeRefusesInput(Diagnostic):
    """The exported model loads, but the runtime raised an error on an input on which eager gives an
    answer.

    ## Why
    Often a size was baked into the graph (a `Reshape` to a fixed shape): the example runs, and another
    size does not. Or the runtime itself does not handle the case, such as an empty tensor.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x.amax(dim=0)            # eager raises for an empty batch, runtimes differ

    trueport.export(Net().eval(), (torch.randn(3, 4),), "net.onnx", dynamic_shapes=({0: "batch"},))
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x.amax(dim=0)

    batch = torch.export.Dim("batch", min=1)
    trueport.export(Net().eval(), (torch.randn(3, 4),), "net.onnx", dynamic_shapes=({0: batch},))
    ```

    ## Fix
    The finding gives the smallest input that fails and the line of the node. If such inputs never come,
    declare a minimum or a maximum; otherwise please report it with the model.
    """

    code = "TP802"
    title = "ONNX Runtime refuses an input that eager accepts"

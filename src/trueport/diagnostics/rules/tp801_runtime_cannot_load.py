from trueport.diagnostics.base import Diagnostic


class RuntimeCannotLoad(Diagnostic):
    """The model was made, and ONNX Runtime refused to load it: an operator without a kernel for this
    dtype, a type that does not fit, a custom domain that was not registered.

    ## Why
    A model that does not load is of no use, so it counts as a failed export. It is found here, in a
    process of its own, and not on the device.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return torch.cumsum(x, 0)       # the runtime has no CumSum kernel for this dtype

    trueport.export(Net().eval(), (torch.ones(3, dtype=torch.bfloat16),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return torch.cumsum(x.float(), 0).to(x.dtype)

    trueport.export(Net().eval(), (torch.ones(3, dtype=torch.bfloat16),), "net.onnx")
    ```

    ## Fix
    The finding shows the runtime's message and the line of the operator. Compute that line in
    `float32`; if your runtime brings its own operators, export with `verify=False`.
    """

    code = "TP801"
    title = "ONNX Runtime cannot load the exported model"

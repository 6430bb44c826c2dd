from trueport.diagnostics.base import Diagnostic


class DtypeUnsupported(Diagnostic):
    """A tensor has a dtype that ONNX does not have.

    ## Why
    Such a model cannot be written. Changing the dtype silently would change the numbers. (Where ONNX has
    the dtype and only the runtime lacks a kernel, a cast is inserted: TP502.)

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x.to(torch.float8_e8m0fnu).float()  # <- here

    trueport.export(Net().eval(), (torch.rand(3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x.to(torch.float16).float()

    trueport.export(Net().eval(), (torch.rand(3),), "net.onnx")
    ```

    ## Fix
    Use a dtype that ONNX has, or export the model in `float32`.
    """

    code = "TP501"
    title = "ONNX lacks this dtype"

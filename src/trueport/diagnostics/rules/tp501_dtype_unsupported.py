from trueport.diagnostics.base import Diagnostic


class DtypeUnsupported(Diagnostic):
    """A tensor has a dtype that ONNX does not have, or for which ONNX Runtime has no kernel of the
    operator that needs it.

    ## Why
    The model could be written but not run. Changing the dtype silently would change the numbers.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x * 2

    trueport.export(Net().eval(), (torch.zeros(3, dtype=torch.complex32),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x * 2

    trueport.export(Net().eval(), (torch.zeros(3, dtype=torch.float16),), "net.onnx")
    ```

    ## Fix
    Cast before the operation and back after it (`x.float()`, then `.to(x.dtype)`), or export the model
    in `float32`.
    """

    code = "TP501"
    title = "ONNX or the runtime lacks this dtype"

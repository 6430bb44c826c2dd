from trueport.diagnostics.base import Diagnostic


class LeftTheGraph(Diagnostic):
    """A tensor was handed to something outside torch: `.numpy()`, `np.asarray`, `.data_ptr()`, a C
    extension, PIL, scipy.

    ## Why
    What happens there is not seen by the trace. Its result would be a constant of the example input.

    ## Example
    ```python
    import numpy as np

    class Net(nn.Module):
        def forward(self, x):
            return x + torch.from_numpy(np.tanh(x.numpy()))  # <- here

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x + torch.tanh(x)

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Fix
    Use the torch function of the same name. Work that has none belongs before or after the model.
    """

    code = "TP204"
    title = "the computation left torch"

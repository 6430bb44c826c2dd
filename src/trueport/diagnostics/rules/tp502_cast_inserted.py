from trueport.diagnostics.base import Diagnostic, Severity


class CastInserted(Diagnostic):
    """The runtime has no kernel of this operator for this dtype, so the exported model computes it in a
    wider one and casts back.

    ## Why
    The result is the same within the precision of the narrow dtype, and was compared with eager. It is
    told because it costs time and memory.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x @ x.T  # <- here

    trueport.export(Net().eval(), (torch.randn(3, 4).bfloat16(),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x @ x.T

    trueport.export(Net().eval(), (torch.randn(3, 4),), "net.onnx")
    ```

    ## Fix
    None is needed. To be rid of the casts, export the model in a dtype that the runtime computes in.
    """

    code = "TP502"
    title = "a cast was inserted for the runtime"
    default_severity = Severity.NOTE

from trueport.diagnostics.base import Diagnostic


class ArmsDisagree(Diagnostic):
    """The two arms of a branch (or a loop and what comes before it) leave a name with values that one ONNX
    value cannot be: another dtype, another number of axes, another structure, or a tensor here and None
    there.

    ## Why
    A value of an ONNX graph has one dtype and one rank, whichever arm ran. Sizes may differ; dtype and
    rank may not.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            if x.sum() > 0:  # <- here
                y = x.long()
            else:
                y = x
            return y

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                y = x.trunc()
            else:
                y = x
            return y

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Fix
    Give the name the same dtype and the same number of axes in both arms: cast in one of them, or keep
    a tensor (of zeros, of size 0) where one arm has None.
    """

    code = "TP103"
    title = "the arms of a branch do not agree"

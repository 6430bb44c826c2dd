from trueport.diagnostics.base import Diagnostic


class ComplexValue(Diagnostic):
    """A complex tensor is an input, an output, a weight or an operand of an operator that has no
    translation for complex numbers.

    ## Why
    ONNX names complex types, but no runtime computes with them. The exported model could not run.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return torch.fft.fft(x)  # <- here

    trueport.export(Net().eval(), (torch.randn(8),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return torch.view_as_real(torch.fft.fft(x))

    trueport.export(Net().eval(), (torch.randn(8),), "net.onnx")
    ```

    ## Fix
    Hand complex values in and out as pairs of real numbers (`torch.view_as_real`,
    `torch.view_as_complex`). Rotary embeddings written with complex numbers are the same sum written
    with `cos` and `sin`.
    """

    code = "TP403"
    title = "a complex number cannot be carried"

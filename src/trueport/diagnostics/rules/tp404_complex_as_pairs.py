from trueport.diagnostics.base import Diagnostic, Severity


class ComplexAsPairs(Diagnostic):
    """An input or an output of the model is complex. In the ONNX model it is a real tensor with one more
    axis at its end, of size 2: the real and the imaginary part.

    ## Why
    ONNX names complex types, but no runtime computes with them. The exported program (`program(z)`) takes
    and gives complex tensors as eager does; another runtime is fed with `torch.view_as_real(z)`, and
    `torch.view_as_complex(y)` turns what it gives back.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return torch.fft.fft(x)

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
    Nothing has to be done. To make the pairs part of the model itself, take them and return them
    (`torch.view_as_complex`, `torch.view_as_real`), or return what is wanted of them (`z.abs()`).
    """

    code = "TP404"
    title = "a complex input or output is carried as pairs of real numbers"
    default_severity = Severity.NOTE

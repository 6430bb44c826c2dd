from trueport.diagnostics.base import Diagnostic


class ComplexValue(Diagnostic):
    """A complex tensor meets an operator that has no translation for complex numbers.

    ## Why
    ONNX names complex types, but no runtime computes with them. They are carried as pairs of real
    numbers, on which each operator has to be written anew.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            z = torch.fft.fft(x)
            return z.scatter_reduce(0, torch.arange(8) // 2, z, "prod").abs()  # <- here

    trueport.export(Net().eval(), (torch.randn(8),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            z = torch.fft.fft(x)
            return torch.cat([z[:4] * z.reshape(4, 2).prod(1), z[4:]]).abs()

    trueport.export(Net().eval(), (torch.randn(8),), "net.onnx")
    ```

    ## Fix
    Write the line with operators that are carried, or with the real and the imaginary part
    (`torch.view_as_real`).
    """

    code = "TP403"
    title = "a complex number cannot be carried"

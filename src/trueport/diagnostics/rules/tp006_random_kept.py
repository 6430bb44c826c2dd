from trueport.diagnostics.base import Diagnostic, Severity


class RandomKept(Diagnostic):
    """`random="onnx"` was asked for: the model draws random numbers at this line, and the exported one draws
    its own, with ONNX's random operators.

    ## Why
    Two runs on the same input give two answers, in eager and in the exported model. So the check compares
    how the results are distributed over many runs, and not their values. A seed set in torch has no
    effect on the exported model.

    ## Example
    ```python
    class Noisy(nn.Module):
        def forward(self, x):
            return x + 0.1 * torch.randn_like(x)  # <- here

    trueport.export(Noisy().eval(), (torch.randn(2, 4),), "net.onnx", random="onnx")
    ```

    ## Mended
    ```python
    class Noisy(nn.Module):
        def forward(self, x, noise):
            return x + 0.1 * noise

    x = torch.randn(2, 4)
    trueport.export(Noisy().eval(), (x, torch.randn_like(x)), "net.onnx")
    ```

    ## Fix
    Nothing has to be done. Where the same numbers must come out again, make the noise an input.
    """

    code = "TP006"
    title = "the exported model draws its own random numbers"
    default_severity = Severity.NOTE

from trueport.diagnostics.base import Diagnostic, Severity


class LongUnrolling(Diagnostic):
    """A Python loop with a plain number of rounds is written out once for each round, and there are very
    many. The line that is pointed at is one that was written out so often.

    ## Why
    The trip count is an ordinary number of the Python program, so each round may differ from the others
    (another layer, another branch), and all of them are traced. The graph grows with the count.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            for _ in range(600):
                x = x * 0.99  # <- here
            return x

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x * 0.99**600

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Fix
    Pass the count as an argument (a tensor or a number), which makes it one `Loop`, or compute without
    the loop.
    """

    code = "TP106"
    title = "a loop with a plain count is written out very many times"
    default_severity = Severity.WARNING

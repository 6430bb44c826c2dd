from trueport.diagnostics.base import Diagnostic


class CannotRewrite(Diagnostic):
    """A branch or a loop depends on a traced value, and the function that holds it cannot be rewritten:
    its source is not available (code made by `exec`, typed at a prompt, or compiled), or it uses a
    construct that is not rewritten (`async`, a generator that is sent values or advanced by hand).

    ## Why
    A data-dependent branch is kept alive by rewriting the function around it. That needs the function's
    source, in a form that can be taken apart into arms.

    ## Example
    ```python
    def halves(x):
        while x.abs().sum() > 1:  # <- here
            x = x / 2
            x = (yield x) or x

    class Net(nn.Module):
        def forward(self, x):
            for half in halves(x):
                x = x + half
            return x

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Mended
    ```python
    def halves(x):
        while x.abs().sum() > 1:
            x = x / 2
            yield x

    class Net(nn.Module):
        def forward(self, x):
            for half in halves(x):
                x = x + half
            return x

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Fix
    Put the function in a file, and write it without the construct that the message names.
    """

    code = "TP107"
    title = "a function that decides by a traced value cannot be rewritten"

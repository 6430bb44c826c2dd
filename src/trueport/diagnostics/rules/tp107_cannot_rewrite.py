from trueport.diagnostics.base import Diagnostic


class CannotRewrite(Diagnostic):
    """A branch or a loop depends on a traced value, and the function that holds it cannot be rewritten:
    its source is not available (code made by `exec`, typed at a prompt, or compiled), or it uses a
    construct that is not rewritten (`yield`, `async`).

    ## Why
    A data-dependent branch is kept alive by rewriting the function around it. That needs the function's
    source, in a form that can be taken apart into arms.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            namespace = {}
            exec("def pick(x):\\n    if x.sum() > 0:\\n        return x\\n    return -x", namespace)
            return namespace["pick"](x)

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x
            return -x

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Fix
    Put the function in a file, and write it without the construct that the message names.
    """

    code = "TP107"
    title = "a function that decides by a traced value cannot be rewritten"

from trueport.diagnostics.base import Diagnostic, Severity


class ArmNotReached(Diagnostic):
    """No input was found that takes one way of a branch, or that enters a loop at all; so that part of the
    exported model was not compared with eager.

    ## Why
    Every branch and loop that is kept alive is to be run both ways before the model is called faithful.
    Inputs were drawn, and then looked for by how far the test was from going the other way. This one
    was not reached: it may need a value that is hard to find, or there may be no such input. Where it
    is possible, the arm is then run by itself on values that come near it; the finding says whether it was.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            if (x * x).sum() < 0:  # <- here
                return x * 2
            return x

    trueport.export(Net().eval(), (torch.rand(3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            if x.sum() < 0:
                return x * 2
            return x

    trueport.export(Net().eval(), (torch.rand(3),), "net.onnx")
    ```

    ## Fix
    Give an example input that takes this way, declare the range of values that the inputs have, or give
    the search more time (`thorough=True`, `--thorough`). Where no input takes it, remove the branch.
    """

    code = "TP810"
    title = "a part of the model was reached by no input that was tried"
    default_severity = Severity.WARNING

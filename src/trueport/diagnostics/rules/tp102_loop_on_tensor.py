from trueport.diagnostics.base import Diagnostic


class LoopOnTensor(Diagnostic):
    """The number of rounds of a Python loop depends on the value of a tensor, in a form that cannot be
    kept as a `Loop`: the loop goes over a text whose length a tensor decided.

    ## Why
    A trace would write the loop out as often as it ran for the example, and the exported model would
    then do that many rounds for every input. `while`, and `for` over `range(n)` or over the rows of a
    tensor, are kept alive as `Loop`.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            for _ in "." * int((x > 0).sum()):  # <- here
                x = x * 0.5 + 1
            return x

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            for _ in range((x > 0).sum()):
                x = x * 0.5 + 1
            return x

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Fix
    Loop over `range(n)` instead of over a text of that length. If the count is one and the same in
    production, make it a constant: an attribute of the model, or `constants=["rounds"]` for an
    argument.
    """

    code = "TP102"
    title = "the trip count of a Python loop depends on a tensor or a free size"

from trueport.diagnostics.base import Diagnostic


class LoopOnTensor(Diagnostic):
    """A `for` or `while` runs as often as a tensor, an integer argument or a free size says.

    ## Why
    A trace unrolls the loop as often as it ran for the example. The exported model would then do that
    many rounds for every input.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x, rounds):
            for _ in range(rounds):
                x = x * 0.5 + 1
            return x

    trueport.export(Net().eval(), (torch.randn(3), torch.tensor(4)), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def __init__(self, rounds):
            super().__init__()
            self.rounds = rounds

        def forward(self, x):
            for _ in range(self.rounds):
                x = x * 0.5 + 1
            return x

    trueport.export(Net(4).eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Fix
    If the count is one and the same in production, make it a constant: an attribute of the model, or
    `constants=["rounds"]` for an integer argument. If the loop walks along an axis, the whole is often
    one tensor operation (`cumsum`, `einsum`, `unfold`, a masked sum).
    """

    code = "TP102"
    title = "the trip count of a Python loop depends on a tensor or a free size"

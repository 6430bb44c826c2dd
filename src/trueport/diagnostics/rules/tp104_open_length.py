from trueport.diagnostics.base import Diagnostic


class OpenLength(Diagnostic):
    """Something whose length is known only when the model runs (a list that a loop over a free size
    filled, the rows of a tensor with a free first size) is used in a way that needs the length now.

    ## Why
    An ONNX graph is written once, for every length. A loop over such a sequence becomes a `Loop`, and a
    list that it fills can be stacked, concatenated, indexed, gone through and returned (TP109); but code
    that has to be written down once per item cannot be exported, nor can lists of such lists.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            groups = []
            for i in range(x.shape[0]):  # <- here
                groups.append([row * 2 for row in x[:i]])
            return groups

    trueport.export(Net().eval(), (torch.randn(2, 3),), "net.onnx", dynamic_shapes=({0: "n"},))
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            groups = []
            for i in range(x.shape[0]):
                groups.append(x[:i] * 2)
            return groups

    trueport.export(Net().eval(), (torch.randn(2, 3),), "net.onnx", dynamic_shapes=({0: "n"},))
    ```

    ## Fix
    Work on the whole tensor, loop over it with `for`, or stack the list before using it elsewhere.
    """

    code = "TP104"
    title = "something of open length is used as if its length were known"

from trueport.diagnostics.base import Diagnostic


class DataDependentSize(Diagnostic):
    """A size that depends on the values of a tensor (from `nonzero`, `x[mask]`, `.item()`, `unique`) was
    used where torch has to know the number to go on: the operation gives a different number of tensors,
    or another rank, for different sizes.

    ## Why
    The size is different for each input. Any number put in its place would be the example's.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            one, two, three = x[x > 0].hsplit(3)  # <- here: are there three equal parts?
            return one + two + three

    trueport.export(Net().eval(), (torch.tensor([1.0, 2.0, -3.0, 4.0]),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            kept = x[x > 0]
            return kept.reshape(3, kept.shape[0] // 3).sum(0)

    trueport.export(Net().eval(), (torch.tensor([1.0, 2.0, -3.0, 4.0]),), "net.onnx")
    ```

    ## Fix
    Take the part that you need by slicing, or keep the full shape and mask the values (`torch.where`).
    If the size is known to lie in a range, say so in the model: `torch._check(n > 0)`.
    """

    code = "TP304"
    title = "a size that only the data decides had to be known"

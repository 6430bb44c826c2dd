from trueport.diagnostics.base import Diagnostic


class BranchOnTensor(Diagnostic):
    """Python needed the value of a tensor to know what to run next, in a place where it cannot be kept
    open: as the number of an axis, as a length of Python's own, in a library that was not rewritten.

    ## Why
    `if`, `while`, `and`, `or`, ternaries, comparisons and lookups on tensors are kept alive as `If` and
    `Loop`. The axis of an operation has to be a real number, and the trace has none; with the example's
    number, the model would be right for the example and wrong, without a word, for other inputs.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return x.softmax(int(x.sum() > 0))  # <- here

    trueport.export(Net().eval(), (torch.randn(3, 4),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x.softmax(1)
            return x.softmax(0)

    trueport.export(Net().eval(), (torch.randn(3, 4),), "net.onnx")
    ```

    ## Fix
    Write the choice as `if`/`elif`/`else`; or, where both sides are cheap and of one shape, as
    `torch.where(condition, a, b)`; or stack the candidates in a tensor and index that.
    """

    code = "TP101"
    title = "Python branched on the value of a tensor"

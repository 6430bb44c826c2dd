from trueport.diagnostics.base import Diagnostic


class OutputType(Diagnostic):
    """`forward` returned, somewhere in its result, an object that is neither a tensor, a number, `None`, a
    string, nor a container of these that can be taken apart.

    ## Why
    The outputs of an ONNX model are tensors. An object that only Python knows would be lost without a
    word.

    ## Example
    ```python
    class Answer:
        def __init__(self, logits):
            self.logits = logits

    class Net(nn.Module):
        def forward(self, x):
            return Answer(x * 2)

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return {"logits": x * 2}

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx")
    ```

    ## Fix
    Return tensors in a dict, list, tuple, named tuple or dataclass. The keys become the names of the
    outputs.
    """

    code = "TP202"
    title = "forward returns a type that cannot be carried"

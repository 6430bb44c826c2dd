from trueport.diagnostics.base import Diagnostic


class OutputType(Diagnostic):
    """`forward` returned, somewhere in its result, an object that is neither a dense tensor, a number,
    `None`, a string, nor a container of these that can be taken apart. Sparse and quantised tensors are
    such objects.

    ## Why
    The outputs of an ONNX model are dense tensors. Anything else would be lost or changed without a
    word.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return {"logits": (x * 2).to_sparse()}

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
    Return dense tensors in a dict, list, tuple, named tuple or dataclass. The keys become the names of
    the outputs.
    """

    code = "TP202"
    title = "forward returns a type that cannot be carried"

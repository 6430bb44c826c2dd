from trueport.diagnostics.base import Diagnostic


class InputType(Diagnostic):
    """One of the arguments is, or holds, an object that is neither a tensor, a number, `None`, a string,
    nor a container of these that can be taken apart.

    ## Why
    The inputs of an ONNX model are tensors. Anything else has to be turned into tensors before the
    call, or fixed in the model; trueport does not guess which.

    ## Example
    ```python
    class Scale:
        def __init__(self, factor):
            self.factor = factor

    class Net(nn.Module):
        def forward(self, x, scale):
            return x * scale.factor

    trueport.export(Net().eval(), (torch.randn(3), Scale(2.0)), "net.onnx")
    ```

    ## Mended
    ```python
    from dataclasses import dataclass

    @dataclass
    class Scale:
        factor: float

    class Net(nn.Module):
        def forward(self, x, scale):
            return x * scale.factor

    trueport.export(Net().eval(), (torch.randn(3), Scale(2.0)), "net.onnx")
    ```

    ## Fix
    Dicts, lists, tuples, named tuples, dataclasses and types registered with torch's pytree are taken
    apart leaf by leaf. Make yours one of these, or pass its tensors one by one.
    """

    code = "TP201"
    title = "an argument has a type that cannot be carried"

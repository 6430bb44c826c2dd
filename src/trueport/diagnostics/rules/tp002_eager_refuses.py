from trueport.diagnostics.base import Diagnostic


class EagerRefuses(Diagnostic):
    """Before anything is traced, the model is run once as it is, in eager PyTorch, on the example input.
    That run raised.

    ## Why
    Eager is the reference: where it gives no answer, no exported model can be right. Other exporters
    trace such a model happily, because shapes and dtypes of a traced graph are checked less strictly,
    and the failure moves to the runtime.

    ## Example
    ```python
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(256, 10)

        def forward(self, x):
            return self.head(x)  # <- here

    trueport.export(Net().eval(), (torch.randn(1, 3),), "net.onnx")     # 3 features into a layer made for 256
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(256, 10)

        def forward(self, x):
            return self.head(x)

    trueport.export(Net().eval(), (torch.randn(1, 256),), "net.onnx")
    ```

    ## Fix
    Run `model(*args)` yourself: it raises the same error at the same line. The usual causes are a wrong
    number of features, an input of another dtype than the weights (`x.half()` into float weights), and
    integers fed to a layer that multiplies. The finding names the dtypes of the parameters and of the
    inputs, and the cast where one would mend it.
    """

    code = "TP002"
    title = "eager PyTorch itself refuses this input"

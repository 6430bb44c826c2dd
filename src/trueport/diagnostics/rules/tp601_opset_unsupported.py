from trueport.diagnostics.base import Diagnostic


class OpsetUnsupported(Diagnostic):
    """The ONNX opset that was asked for is not one that trueport writes, or the model needs an operator
    that came later.

    ## Why
    Raising the number silently, as other exporters do, gives a model that the target cannot load, and
    nobody knows before deployment.

    ## Example
    ```python
    model = nn.Linear(4, 4).eval()
    trueport.export(model, (torch.randn(2, 4),), "net.onnx", opset_version=7)
    ```

    ## Mended
    ```python
    model = nn.Linear(4, 4).eval()
    trueport.export(model, (torch.randn(2, 4),), "net.onnx", opset_version=18)
    ```

    ## Fix
    Ask for one of the opsets that the finding lists, the lowest that your runtime's documentation names
    as supported.
    """

    code = "TP601"
    title = "this opset cannot be written"

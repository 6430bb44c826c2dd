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
    trueport.export(model, (torch.randn(2, 4),), "net.onnx", opset_version=13)
    ```

    ## Fix
    Ask for the opset that the finding names; for an operator that came later, it is the lowest that has
    all of the model. Where you know the runtime and not its opset, name it: target="onnxruntime==1.17"
    (`--target`). `trueport doctor --target onnxruntime==1.17` says what its opset costs.
    """

    code = "TP601"
    title = "this opset cannot be written"

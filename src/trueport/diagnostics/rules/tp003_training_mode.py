from trueport.diagnostics.base import Diagnostic


class TrainingMode(Diagnostic):
    """The model, or a part of it, is in training mode and holds a layer that behaves differently there:
    dropout, or batch norm, which then uses the statistics of the batch and writes its running averages.

    ## Why
    An exported model is used for inference. Exported in training mode it would drop activations at
    random or normalise each batch by itself, and nobody would see it before production.

    ## Example
    ```python
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))         # a new module is in training mode
    trueport.export(model, (torch.randn(2, 4),), "net.onnx")
    ```

    ## Mended
    ```python
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).eval()
    trueport.export(model, (torch.randn(2, 4),), "net.onnx")
    ```

    ## Fix
    Call `model.eval()` before the export. A layer that was put in training mode on purpose (Monte Carlo
    dropout) is random, and cannot be compared with anything.
    """

    code = "TP003"
    title = "the model is in training mode"

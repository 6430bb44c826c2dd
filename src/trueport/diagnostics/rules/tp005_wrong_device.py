from trueport.diagnostics.base import Diagnostic


class WrongDevice(Diagnostic):
    """Parameters, buffers or inputs live on different devices, or on the `meta` device, which holds shapes
    but no numbers.

    ## Why
    Eager cannot run such a model, and weights on `meta` have no values that could be written to a file.

    ## Example
    ```python
    with torch.device("meta"):
        model = nn.Linear(4, 4)
    trueport.export(model.eval(), (torch.randn(2, 4),), "net.onnx")
    ```

    ## Mended
    ```python
    with torch.device("meta"):
        model = nn.Linear(4, 4)
    model = model.to_empty(device="cpu")
    model.load_state_dict({"weight": torch.zeros(4, 4), "bias": torch.zeros(4)})
    trueport.export(model.eval(), (torch.randn(2, 4),), "net.onnx")
    ```

    ## Fix
    Bring everything to one place: `model.cpu()` and `x.cpu()`. A model built on `meta` needs its
    weights loaded first (`to_empty(device="cpu")`, then `load_state_dict`). A tensor kept as a plain
    attribute does not move with `model.to(...)`: register it with `register_buffer`.
    """

    code = "TP005"
    title = "parameters and inputs are not on one usable device"

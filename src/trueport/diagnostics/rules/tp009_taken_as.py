from trueport.diagnostics.base import Diagnostic, Severity


class TakenAs(Diagnostic):
    """What was given was taken as something else: a compiled or a wrapped model as the module inside, an
    `ExportedProgram` as its module, a dict at the end of `args` as keyword arguments, a model that computes something
    else while it is exported as the one that eager runs.

    ## Why
    `torch.compile`, `DataParallel` and `DistributedDataParallel` compute nothing of their own, so the module
    inside is the model. An `ExportedProgram` is what `torch.export` made of a model: what it froze is frozen
    there already, and trueport sees no more than the program. A dict at the end of `args` means keyword
    arguments to `torch.onnx.export`, and so it does here where its keys are parameters of `forward`. Code that asks
    `torch.compiler.is_exporting()` is told yes, so that libraries take their traceable way; where that way gives
    another result than eager, it is told no, and the file gives what eager gives.

    ## Example
    ```python
    model = torch.compile(nn.Linear(4, 4).eval())
    trueport.export(model, (torch.randn(2, 4),), "net.onnx")
    ```

    ## Mended
    ```python
    model = nn.Linear(4, 4).eval()
    trueport.export(model, (torch.randn(2, 4),), "net.onnx")
    ```

    ## Fix
    If it was taken as you meant it, there is nothing to do. Otherwise pass the module itself, and keyword
    arguments as `kwargs={...}`.
    """

    code = "TP009"
    title = "the model or its arguments were taken as something else"
    default_severity = Severity.NOTE

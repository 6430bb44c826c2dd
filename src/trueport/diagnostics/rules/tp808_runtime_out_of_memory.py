from trueport.diagnostics.base import Diagnostic


class RuntimeOutOfMemory(Diagnostic):
    """The runtime asked for more memory than the limit of the check.

    ## Why
    Either the model needs that much, or something in the graph grew: a tensor that eager never makes
    whole, an `Expand` that is not a view any more.

    ## Example
    ```text
    error[TP808]: ONNX Runtime went beyond 4.0 GB on sizes batch=512 (eager peaked at 0.3 GB)
    ```

    ## Mended
    ```text
    checked on 5 inputs, peak 0.4 GB
    ```

    ## Fix
    Declare a maximum for the free size (`--dim batch=1..64`), so that larger ones are not tried. If the
    size is a common one, the line that the finding names makes a much larger tensor than in eager:
    please report it.
    """

    code = "TP808"
    title = "the exported model needs more memory than allowed"

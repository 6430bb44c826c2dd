from trueport.diagnostics.base import Diagnostic


class RuntimeHang(Diagnostic):
    """The runtime did not load the model, or did not answer, within the time limit. Its process was ended;
    yours was not touched.

    ## Why
    A loop without an end, or an optimiser of the runtime that is caught in one. In production the
    service would hang.

    ## Example
    ```text
    error[TP806]: ONNX Runtime gave no answer within 15 s (eager needed 0.02 s)
    ```

    ## Mended
    ```text
    checked on 5 inputs in 0.4 s
    ```

    ## Fix
    If the model simply is that large, give it more time. Otherwise the runtime is at fault: try its
    graph optimisations switched off, and another version.
    """

    code = "TP806"
    title = "the exported model does not finish in ONNX Runtime"
    no_example = "it takes an endless loop inside the runtime; tests/verify/test_sandbox.py builds one by hand"

from trueport.diagnostics.base import Diagnostic


class RuntimeCrash(Diagnostic):
    """The process that ran the model ended by a signal (a segmentation fault, an arithmetic exception). It
    was a process of its own; yours goes on.

    ## Why
    A bug in a kernel of the runtime, met by this model. In production it would take the service down.

    ## Example
    ```text
    error[TP807]: ONNX Runtime crashed (SIGSEGV) while running the example input
    ```

    ## Mended
    ```text
    checked on 5 inputs, all equal
    ```

    ## Fix
    Try another version of onnxruntime. Writing the line that the finding names in another way often
    avoids the kernel. Please report it to onnxruntime with the written model (`verify=False` writes
    it).
    """

    code = "TP807"
    title = "ONNX Runtime crashed on the exported model"
    no_example = "it takes a fault in a kernel of the runtime; tests/verify/test_sandbox.py ends the process by hand"

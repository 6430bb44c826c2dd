from trueport.diagnostics.base import Diagnostic


class OutOfTime(Diagnostic):
    """The command did not end within the time that `--timeout` gave it. Nothing was written, and nothing is
    said about the model.

    ## Why
    Loading, tracing and checking a large model take minutes; a limit keeps a CI job from waiting for ever
    for one that hangs.

    ## Example
    ```text
    error[TP007]: the command was to end within 30 s; it had come to: verify, 4 inputs
    ```

    ## Mended
    ```sh
    trueport export model.py:Net -i x:2x4 -o net.onnx --timeout 600
    ```

    ## Fix
    Give it more time. Where it stands still at one stage, look there: a forward that never ends, or a
    disk that is very slow.
    """

    code = "TP007"
    title = "the command did not end in time"
    no_example = "it takes a clock; tests/cli/test_progress.py gives a command too little time"

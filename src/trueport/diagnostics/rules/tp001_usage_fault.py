from trueport.diagnostics.base import Diagnostic


class UsageFault(Diagnostic):
    """The call or the command line asks for something that is not there or cannot be read: a target that
    does not exist, an input spec that does not parse, a name that `forward` does not have, an output
    file that already exists, a folder that cannot be written.

    ## Why
    The model was not judged. Guessing what was meant would export a different model than the one asked
    for.

    ## Example
    ```sh
    trueport export model.py:Nett -i x:2x3 -o net.onnx      # the class is called Net
    trueport export "model.py:Net(depth=3)" -i x:2x3 -o net.onnx   # targets are names, never evaluated
    ```

    ## Mended
    ```sh
    trueport export model.py:Net -i x:2x3 -o net.onnx
    trueport export model.py:deep_net -i x:2x3 -o net.onnx  # def deep_net(): return Net(depth=3)
    ```

    ## Fix
    The message names the word that was not understood and, where one is close, what was probably meant.
    To replace an existing file pass `overwrite=True` (`--overwrite`).
    """

    code = "TP001"
    title = "the request cannot be carried out as written"

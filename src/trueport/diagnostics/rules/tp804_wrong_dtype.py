from trueport.diagnostics.base import Diagnostic


class WrongDtype(Diagnostic):
    """An output of the ONNX model has another dtype than eager's.

    ## Why
    torch and ONNX promote mixed operands by different rules; a cast was missed on the way. Values may
    look right and overflow later.

    ## Example
    ```text
    error[TP804]: output `y` is float64, eager gives float32
    ```

    ## Mended
    ```text
    checked on 5 inputs: dtype and shape exact, all equal
    ```

    ## Fix
    This is a bug of trueport or of a translation. An explicit cast at the line that the finding names
    (`.to(x.dtype)`) gets round it; please report it with the model.
    """

    code = "TP804"
    title = "the exported model returns another dtype than eager"

from trueport.diagnostics.base import Diagnostic


class WrongValues(Diagnostic):
    """On a checked input, the ONNX model and eager differ by more than their dtype can explain.

    ## Why
    This is what the check is for. It was tried with other sizes and other values than the example's,
    and one of them told the two apart. Nothing was written.

    ## Example
    ```text
    error[TP805]: output `y` differs from eager by 0.31 (allowed 1.3e-05)
       = seen:  batch=5, values: normal; 4 other inputs agree
    ```

    ## Mended
    ```text
    checked on 5 inputs, worst difference 2.4e-07 (allowed 1.3e-05)
    ```

    ## Fix
    If the model is unstable by nature (a sort of nearly equal values, `argmax` of ties, a division by
    almost zero), the difference is in the model, and a wider range of inputs shows it: declare the
    values with `@low..high`. Otherwise it is a bug of trueport, of a translation or of the runtime;
    please report it with the finding.
    """

    code = "TP805"
    title = "the exported model returns other values than eager"

from trueport.diagnostics.base import Diagnostic


class WrongShape(Diagnostic):
    """On a checked input, an output of the ONNX model has another shape, or another rank, than eager's.

    ## Why
    A size was frozen or computed wrongly on the way. Whoever uses the model would read the wrong
    elements.

    ## Example
    ```text
    error[TP803]: output `y` has shape [1, 4], eager gives [3, 4]
       = seen:  batch=3; the example (batch=1) agrees
    ```

    ## Mended
    ```text
    checked on 5 inputs: batch=1, 2, 3, 7, 0, all equal
    ```

    ## Fix
    The model did nothing wrong that eager would not also do: this is a bug of trueport, of a
    translation, or of the runtime. The finding says on which input. Nothing was written; please report
    it with the model.
    """

    code = "TP803"
    title = "the exported model returns another shape than eager"

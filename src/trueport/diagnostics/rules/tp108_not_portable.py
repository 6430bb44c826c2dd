from trueport.diagnostics.base import Diagnostic


class NotPortable(Diagnostic):
    """`trueport fix --portable` was asked to write a branch or a loop with torch.cond, torch.while_loop, torch.where or
    scan, and there is no such form of it that torch's own exporters take and that gives the same results.

    ## Why
    The arms of torch.cond return tensors of one structure and dtype, and none that it was given; what torch.while_loop
    carries keeps its shape; a list cannot be filled under a condition; nothing can be returned or raised from inside.
    ONNX itself, and so `trueport export`, has no such rules: the model exports as it is.

    ## Example
    ```text
    while x.shape[0] > 1:               # what the loop carries gets shorter in each round
        x = x[0::2] + x[1::2]
    ```

    ## Mended
    ```text
    while n > 1:                        # a size that stays, and a number beside it that says how much of it counts
        x, n = fold(x, n), n // 2
    ```

    ## Fix
    `trueport export` takes the model as it is. Where torch.export must take it too, the finding says what stands in
    the way: give what is carried one size, take the exit out of the loop, or fill a tensor instead of a list.
    """

    code = "TP108"
    title = "this cannot be written with torch's own control flow"
    no_example = "it is found by `trueport fix --portable`, never by an export; tests/fix/portable has its cases"

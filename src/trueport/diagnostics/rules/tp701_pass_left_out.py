from trueport.diagnostics.base import Diagnostic, Severity


class PassLeftOut(Diagnostic):
    """A pass that makes the graph smaller did harm on this model, and was left out. The exported model is right without
    it, and may be a little larger or slower.

    ## Why
    After the passes the model is compared with eager. Where it differs, or cannot be loaded, the model before the
    passes is checked, too. If that one is right, the passes are run in halves until the one is found that made the
    difference; it is left out, and what is left is checked as a whole. A pass that fails, or leaves a graph that is
    none, is left out at once. Either is a fault of trueport, and never one of your model.

    ## Example
    ```text
    warning[TP701]: the pass 'moves' would have changed what the model gives, and was left out
    ```

    ## Mended
    ```text
    trueport export model.py:Net -i x:Nx3 -o net.onnx --passes=-moves
    ```

    ## Fix
    None is needed. Please report it, with the model if you can: `optimize="NAME"` (`--passes NAME`) runs this pass
    alone, and shows it again. `optimize=False` (`--no-optimise`) runs none.
    """

    code = "TP701"
    title = "a pass over the graph did harm, and was left out"
    default_severity = Severity.WARNING
    no_example = "it is a fault of trueport's own, and those that are known are mended"

from dataclasses import dataclass

from trueport.diagnostics.base import Diagnostic


@dataclass(frozen=True, kw_only=True)
class OurFault(Diagnostic):
    """Something went wrong inside trueport that should not. It is not a fault of your model.

    ## Why
    Every other failure has a code of its own. This one is a bug, and nobody knows of it until it is
    reported.

    ## Example
    ```text
    error[TP901]: trueport failed while lowering: KeyError: 's0'
       = fix:   please report it, with the model or the smallest part of it that shows this
    ```

    ## Mended
    ```text
    the same model, exported with the next version
    ```

    ## Fix
    Please report it with the text of this message and, if you can, the model. The command line writes a
    file to the temporary folder that holds what a report needs (versions, the command, the traceback,
    nothing of the model) and prints where it is; `--debug` prints the traceback at once.
    """

    code = "TP901"
    title = "trueport itself failed"
    no_example = "it takes a bug of trueport, which would be mended and not shown; tests/cli raise one by hand"

    trace: str = ""
    """The traceback, where there is one: for the report of the bug, not for the screen."""

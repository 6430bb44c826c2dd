from trueport.diagnostics.base import Diagnostic, Severity


class UntestedTorch(Diagnostic):
    """The installed torch is newer than every release that trueport was tried with. It is tried if all that
    trueport relies on was found to be as before (a warning), and refused if not (an error).

    ## Why
    A trace relies on parts of torch that may change from one release to the next. What is relied on is
    written down as checks, and on such a release they are run before anything else. That they pass does not
    say that every model exports as before; what is written is verified as always.

    ## Example
    ```text
    warning[TP603]: torch 2.99.0 is newer than what was tried (>=2.10,<2.16); all that trueport relies on is there
    ```

    ## Mended
    ```sh
    pip install "torch<2.16"
    ```

    ## Fix
    Install a release that was tried, or a newer trueport. `trueport doctor` names what has moved.
    """

    code = "TP603"
    title = "this release of torch was not tried"
    default_severity = Severity.WARNING
    no_example = "it takes a torch that is not out yet; tests/test_versions.py makes one up"

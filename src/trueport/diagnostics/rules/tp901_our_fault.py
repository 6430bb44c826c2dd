import importlib.metadata
from dataclasses import dataclass

from trueport.diagnostics.base import Diagnostic


def where_to_report() -> str:
    """The address of the issues, as the installed package names it; empty where it names none."""
    try:
        named = importlib.metadata.metadata("trueport").get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    addresses = dict(each.split(", ", 1) for each in named if ", " in each)
    return next((addresses[label] for label in ("Issues", "Source", "Homepage") if label in addresses), "")


def report_it(what: str = "") -> str:
    """The way out of a bug of ours."""
    address = where_to_report()
    at = f" at {address}" if address else " to its authors"
    return f"this is a bug of trueport, not a fault of your model: please report it{at}{what}"


@dataclass(frozen=True, kw_only=True)
class OurFault(Diagnostic):
    """Something went wrong inside trueport that should not. It is not a fault of your model.

    ## Why
    Every other failure has a code of its own. This one is a bug, and nobody knows of it until it is
    reported.

    ## Example
    ```text
    error[TP901]: trueport failed while lowering: KeyError: 's0'
       = fix:   this is a bug of trueport, not a fault of your model: please report it at https://…/issues
    ```

    ## Mended
    ```text
    the same model, exported with the next version
    ```

    ## Fix
    Please report it at the address that the finding names, with the model or the smallest part of it that
    shows this, if you can. The command line writes a file to attach to the temporary folder, and prints where
    it is: it holds the versions, the command, the finding and the traceback, and nothing of the model's weights
    and inputs. `--debug` prints the traceback at once.
    """

    code = "TP901"
    title = "trueport itself failed"
    no_example = "it takes a bug of trueport, which would be mended and not shown; tests/cli raise one by hand"

    trace: str = ""
    """The traceback, where there is one: for the report of the bug, not for the screen."""

from trueport.diagnostics.base import Diagnostic


class VersionMismatch(Diagnostic):
    """The versions of torch, onnx, onnx-ir or onnxruntime on this machine are not ones with which this
    can work: one is older than what the others write or call.

    ## Why
    Such a pair fails late and far from the cause: an unknown IR version at load time, an attribute
    missing in a library.

    ## Example
    ```sh
    pip install trueport "onnxruntime==1.16"       # older than the models that are written
    ```

    ## Mended
    ```sh
    pip install trueport "onnxruntime>=1.27"
    ```

    ## Fix
    Install the versions that the finding names; `trueport doctor` lists what is installed and what was
    tried. `requirements.lock` in the repository holds a set that was tested as a whole.
    """

    code = "TP602"
    title = "the installed versions do not work together"
    no_example = "it takes another set of installed packages; tests/test_versions.py makes one up"

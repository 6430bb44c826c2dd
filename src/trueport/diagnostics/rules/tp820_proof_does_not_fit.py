from trueport.diagnostics.base import Diagnostic


class ProofDoesNotFit(Diagnostic):
    """The certificate beside an ONNX file does not speak of this file, or contradicts itself: the file or its data
    was changed after it was checked, the certificate is another file's, or somebody edited it.

    ## Why
    `net.onnx.proof.json` says what was compared with eager PyTorch before the file was written. It holds for one
    file, which it names by its hash. A tool that rewrites the file (an optimiser, a quantiser, a viewer that saves)
    leaves a certificate that says nothing about what it wrote.

    ## Example
    ```text
    error[TP820]: net.onnx is not the file that was checked
       = seen:  sha256 of the file: 51d2…, of the certificate: 9c41…
       = fix:   export it again, or compare it with the file that was checked: trueport verify checked.onnx net.onnx
    ```

    ## Mended
    ```text
    trueport export model.py:Net -i x:BxS -o net.onnx && trueport audit net.onnx
    ```

    ## Fix
    Export the model again, which writes both. If a tool changed the file on purpose, compare the two files:
    `trueport verify checked.onnx net.onnx`.
    """

    code = "TP820"
    title = "the certificate does not fit the file"
    no_example = "it takes a file that was changed after its export; tests/report/test_audit.py changes some"

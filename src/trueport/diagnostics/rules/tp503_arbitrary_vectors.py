from trueport.diagnostics.base import Diagnostic, Severity


class ArbitraryVectors(Diagnostic):
    """Eigenvectors and singular vectors have no sign of their own: if v is one, so is -v. The exported model
    finds valid ones, which need not have the signs that eager's library happens to give.

    ## Why
    LAPACK's signs follow from the rounding of every step it takes, so no other program gives the same ones.
    Vectors of equal eigenvalues are arbitrary altogether. A result in which the choice cancels out
    (`u @ vh`, `v @ diag(e) @ v.T`, the squares of the vectors) is the same either way; the comparison with
    eager shows whether this model's is. If it reports wrong values as well, the model depends on the choice.

    ## Example
    ```python
    class Net(nn.Module):
        def forward(self, x):
            u, s, vh = torch.linalg.svd(x)  # <- here
            return u @ vh

    trueport.export(Net().eval(), (torch.eye(3) + torch.rand(3, 3),), "net.onnx")
    ```

    ## Mended
    ```python
    class Net(nn.Module):
        def forward(self, x):
            return torch.linalg.svdvals(x)

    trueport.export(Net().eval(), (torch.eye(3) + torch.rand(3, 3),), "net.onnx")
    ```

    ## Fix
    None is needed where the comparison with eager succeeds. Otherwise fix the signs in the model, for
    example by making the largest element of each vector positive, and export again:
    `v * v.gather(-2, v.abs().argmax(-2, keepdim=True)).sign()`.
    """

    code = "TP503"
    title = "vectors that are given up to their sign"
    default_severity = Severity.WARNING

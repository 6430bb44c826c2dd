from trueport.diagnostics.base import Diagnostic


class WrongDistribution(Diagnostic):
    """The model draws random numbers; run many times on the same input, the results of the ONNX model (exported
    with `random="onnx"`, or a file that `trueport verify` was given) are distributed otherwise than eager's.

    ## Why
    Random numbers cannot be compared one by one, so both were run some hundred times, and what the runs
    gave was compared: single elements, the mean, the spread, the smallest and the largest. The limit is
    one that two samples of the same distribution exceed once in ten million times.

    ## Example
    ```python
    def noise(op, x, **options):
        return op.RandomUniformLike(x)               # eager draws from a normal distribution

    class Net(nn.Module):
        def forward(self, x):
            return x + torch.randn_like(x)

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx", random="onnx",
                    custom_translation_table={torch.ops.aten.randn_like.default: noise})
    ```

    ## Mended
    ```python
    def noise(op, x, **options):
        return op.RandomNormalLike(x)

    class Net(nn.Module):
        def forward(self, x):
            return x + torch.randn_like(x)

    trueport.export(Net().eval(), (torch.randn(3),), "net.onnx", random="onnx",
                    custom_translation_table={torch.ops.aten.randn_like.default: noise})
    ```

    ## Fix
    Mend the translation if it is yours. Otherwise it is a bug of trueport or of the runtime: please report
    it with the finding. Or make the noise an input of the model, and draw it outside.
    """

    code = "TP811"
    title = "random results are distributed otherwise than in eager"

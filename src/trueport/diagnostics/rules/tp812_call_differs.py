from trueport.diagnostics.base import Diagnostic


class CallDiffers(Diagnostic):
    """One call of the model, run by itself in ONNX Runtime, gives something else than eager's own call on
    operands that the model may come to.

    ## Why
    A model is checked on two levels. Before whole runs are compared, every distinct call (operator,
    dtypes, axes, other arguments) is run alone on edge operands: the lowest and highest value, -1, 0,
    halves, powers of two and their neighbours, ties, long and short rows, first and last index. So a
    fault shows that no drawn input of the whole model would reach. Operands are only drawn from what the graph
    says the model can give the call: a declared range (`@0..999`), a mask, an index, the result of a
    softmax. Among these a difference at an integer, or at a float of everyday magnitude (zero, or 1e-5
    to 1e6), is an error; at other finite floats it is a warning. NaN and infinities are told in one
    line of the report, and are errors with `--nonfinite`.

    ## Example
    ```python
    def half_up(op, x):                              # eager rounds 5000.5 to 5000, and this to 5001
        return op.Where(op.Greater(op.Abs(x), 4000.0), op.Floor(op.Add(x, 0.5)), op.Round(x))

    class Net(nn.Module):
        def forward(self, x):
            return torch.round(x)  # <- here

    table = {torch.ops.aten.round.default: half_up}
    trueport.export(Net().eval(), (torch.rand(5),), "net.onnx", custom_translation_table=table)
    ```

    ## Mended
    ```python
    def half_to_even(op, x):
        return op.Round(x)

    class Net(nn.Module):
        def forward(self, x):
            return torch.round(x)

    table = {torch.ops.aten.round.default: half_to_even}
    trueport.export(Net().eval(), (torch.rand(5),), "net.onnx", custom_translation_table=table)
    ```

    ## Fix
    Mend the translation if it is yours. If the values never come there, declare their range
    (`ids:BxS:i64@0..999`). Otherwise write the line in another way, and report it with the finding: it
    is a fault of trueport or of a kernel of the runtime.
    """

    code = "TP812"
    title = "a call of the model gives something else than eager's"

from trueport.diagnostics.base import Diagnostic


class NotDeterministic(Diagnostic):
    """The model was run twice in eager PyTorch on the same input and gave two different answers.

    ## Why
    There is no single answer that the exported model could be held against. The usual cause is
    randomness in `forward` (`torch.rand`, `torch.randn_like`, `F.dropout` without
    `training=self.training`, `torch.bernoulli`), or state that one call leaves behind for the next.

    ## Example
    ```python
    class Noisy(nn.Module):
        def forward(self, x):
            return x + 0.1 * torch.randn_like(x)  # <- here

    trueport.export(Noisy().eval(), (torch.randn(2, 4),), "net.onnx")
    ```

    ## Mended
    ```python
    class Noisy(nn.Module):
        def forward(self, x, noise):
            return x + 0.1 * noise

    x = torch.randn(2, 4)
    trueport.export(Noisy().eval(), (x, torch.randn_like(x)), "net.onnx")
    ```

    ## Fix
    Make the noise an input, as above; or switch it off in `eval()` (`F.dropout(x, p,
    training=self.training)`).
    """

    code = "TP004"
    title = "two eager runs on the same input differ"

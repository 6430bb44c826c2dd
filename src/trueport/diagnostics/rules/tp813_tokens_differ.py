from trueport.diagnostics.base import Diagnostic


class TokensDiffer(Diagnostic):
    """The exported graph, run step by step in ONNX Runtime, chose another token than `model.generate()` did in eager.

    ## Why
    After the ordinary check a model for generation is run as it will be used: greedy, with a cache from empty, the
    prompt in one piece and in several, for one row and for three with padding on the left. Every token is compared. Two
    tokens whose logits are equal within the tolerance of the dtype are a tie: it is named, and eager's token is taken.
    Any other difference is this error, and so are logits that are further apart than rounding explains, though the best
    of them be the same. Nothing is written then.

    ## Example
    ```text
    logits at step 3: eager chose 17 (2.31 before 1.98), ONNX Runtime chose 5
    ```

    ## Mended
    ```text
    32 tokens of 4 runs are the same; no ties
    ```

    ## Fix
    Report it with the model's config: the graph was the same on the inputs that the ordinary check drew. Where the
    model adds up in a low precision, compare with a model in float32 first (`model.float()`).
    """

    code = "TP813"
    title = "the exported model generates other tokens"
    no_example = "it takes a model of transformers that is exported wrongly; tests/generation hands over a wrong graph"

from trueport.diagnostics.base import Diagnostic


class GenerateUnknown(Diagnostic):
    """`trueport.generation.export` watched `generate()` call the model, and something in these calls cannot become an
    input, an output or a constant of one graph that serves every step.

    ## Why
    A graph for generation takes the new tokens and the states that the step before has given, and gives the next ones.
    What these are is found by watching `generate()` on two steps, with two batches and two lengths: an axis follows the
    batch, the new tokens or all tokens, or it is fixed. A cache of another kind, a number that counts the steps, or an
    argument that is made anew at each step in a way that the lengths do not tell, is not guessed.

    ## Example
    ```text
    def prepare_inputs_for_generation(self, input_ids, step=0, **kwargs):
        return {"input_ids": input_ids, "temperature": 1.0 / (step + 1)}    # another number at each step
    ```

    ## Mended
    ```text
    def prepare_inputs_for_generation(self, input_ids, **kwargs):
        return {"input_ids": input_ids}                                     # a number belongs into a logits processor
    ```

    ## Fix
    Give `inputs=` where the model is called with more than token ids. Otherwise wrap the model in a module of your own
    that takes and gives the states as tensors, and export that with `trueport.export`.
    """

    code = "TP206"
    title = "what generate() does at each step cannot be carried over"
    no_example = "it takes a model of transformers; tests/generation has its cases"

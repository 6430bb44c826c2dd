"""Greedy generation with a folder of `trueport generate export`: onnxruntime and numpy, nothing else.

python examples/generate.py out/ 1 15043 3186
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime


def generate(folder: str | Path, prompt: np.ndarray, mask: np.ndarray, count: int) -> np.ndarray:
    """`count` more tokens for each row of the prompt; rows are padded on the left, where their mask is 0."""
    session = onnxruntime.InferenceSession(Path(folder) / "model.onnx")
    outputs = [output.name for output in session.get_outputs()]
    sizes = {"batch": len(prompt), "past": 0}
    states = {
        given.name: np.zeros([sizes.get(size, size) for size in given.shape], np.float32)
        for given in session.get_inputs()
        if given.name.startswith("past_")
    }
    new, tokens = prompt, []
    for _ in range(count):
        positions = np.maximum(mask.cumsum(1) - 1, 0)[:, -new.shape[1] :]
        feeds = {"input_ids": new, "attention_mask": mask, "position_ids": positions, **states}
        found = dict(zip(outputs, session.run(None, feeds), strict=True))
        states = {name: found[name.replace("past_key_values", "present")] for name in states}
        new = found["logits"][:, -1:].argmax(-1)
        mask = np.concatenate([mask, np.ones_like(new)], 1)
        tokens.append(new)
    return np.concatenate(tokens, 1)


if __name__ == "__main__":
    words = np.array([[int(word) for word in sys.argv[2:]]])
    print(*generate(sys.argv[1], words, np.ones_like(words), 20)[0])

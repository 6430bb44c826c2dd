"""Lists that an open loop fills with what is the same each time: None, a text, or tensors beside such things."""

from __future__ import annotations

import torch

from tests.control_flow.kept_alive import ROWS, assert_kept_alive, refused, rows


def on(model):
    return assert_kept_alive(model, *rows(4), [*rows(1, 2, 7), (-torch.ones(3, 3),)], dynamic_shapes=ROWS)


def scaled(row):
    return row * 2, None


def test_a_scale_that_is_none_for_every_frame():
    def model(x):
        frames, scales = [], []
        for row in x:
            frame, scale = scaled(row)
            frames.append(frame)
            scales.append(scale)
        out = []
        for frame, scale in zip(frames, scales, strict=True):
            out.append(frame + 1 if scale is None else frame * scale)
        return torch.stack(out), len(scales)

    on(model)


def test_tensors_beside_none_and_a_text():
    def model(x):
        kept = []
        for row in x:
            kept.append((row.sum(), None, "sum"))
        total = x.new_zeros(())
        for value, mask, name in kept:
            if mask is None and name == "sum":
                total = total * 0.5 + value
        return total, kept[-1][0]

    on(model)


def test_texts_are_counted():
    def model(x):
        names = []
        for row in x:
            if row.sum() > 0:
                names.append("up")
        return x * len(names)

    on(model)


def test_texts_that_differ_are_refused():
    def model(x):
        names = []
        for row in x:
            names.append("up" if row.sum() > 0 else "down")
        return x * sum(name == "up" for name in names)

    assert refused(model, *rows(4), dynamic_shapes=ROWS).code == "TP103"

"""Attention, as eager gives it: with free lengths, masks of every kind, grouped heads, and rows that see nothing."""

from __future__ import annotations

import functools
import math

import onnx_ir as ir
import pytest
import torch
import torch.nn.functional as F

import trueport
from tests.lower.ops.faithful import operators
from tests.lower.through_onnx import check

DYNAMIC = torch.export.Dim.DYNAMIC
LENGTHS = {0: DYNAMIC, 2: DYNAMIC}


def heads(batch, queries, keys, dtype=torch.float32, shared=2):
    q = torch.randn(batch, 4, queries, 8, dtype=dtype)
    return q, *torch.randn(2, batch, shared, keys, 8, dtype=dtype)


def masked(batch, queries, keys):
    mask = torch.rand(batch, 1, queries, keys) > 0.5
    mask[0, 0, 0] = False  # a query that sees no key gives zeros in eager
    return mask


def added(batch, queries, keys):
    return torch.where(masked(batch, queries, keys), 0.0, -math.inf)


MASKS = {"truth": masked, "numbers to be added": added}


@pytest.mark.parametrize("opset", [20, 23], ids=["by matrix products", "one operator"])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_masks_with_a_row_that_sees_nothing(mask, opset):
    def forward(q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, mask)

    shapes = (LENGTHS, LENGTHS, LENGTHS, {0: DYNAMIC, 2: DYNAMIC, 3: DYNAMIC})
    example = (*heads(2, 3, 5, shared=4), mask(2, 3, 5))
    program = trueport.export(forward, example, dynamic_shapes=shapes, opset_version=opset)
    assert ("Attention" in operators(program)) is (opset == 23)
    others = (*heads(3, 6, 2, shared=4), mask(3, 6, 2))
    torch.testing.assert_close(program(*others), forward(*others), rtol=1e-4, atol=1e-5)


BROADCAST = ("qk", "1k", "q1", "b11k", "b1q1", "1hqk", "bhqk", "h1k")


@pytest.mark.parametrize(("shared", "opset"), [(2, 20), (4, 23), (2, 24)])
def test_every_mask_that_eager_broadcasts(shared, opset):
    """The kernel of ONNX's own operator lets a mask broadcast over batch and heads, and not over queries or keys."""

    def forward(q, k, v, truth, numbers):
        grouped = {"enable_gqa": shared < 4}
        return [F.scaled_dot_product_attention(q, k, v, mask, **grouped) for mask in (*truth, *numbers)]

    def given(batch, queries, keys):
        sizes = {"b": batch, "h": 4, "q": queries, "k": keys, "1": 1}
        masks = [torch.rand([sizes[axis] for axis in axes]) - 0.4 for axes in BROADCAST]
        return *heads(batch, queries, keys, shared=shared), [mask > 0 for mask in masks], masks

    free = {axis: axis for axis in "bqk"}
    masks = [{i: free[axis] for i, axis in enumerate(axes) if axis in free} for axes in BROADCAST]
    lengths = {0: "b", 2: "k"}
    program = trueport.export(
        forward, given(2, 3, 5), dynamic_shapes=({0: "b", 2: "q"}, lengths, lengths, masks, masks), opset_version=opset
    )
    assert ("Attention" in operators(program)) is (opset >= 23)
    for others in (given(3, 6, 2), given(1, 1, 4)):
        torch.testing.assert_close(program(*others), forward(*others), rtol=1e-4, atol=1e-5)


KINDS = {
    "plain": {},
    "causal": {"is_causal": True},
    "grouped heads and a scale": {"enable_gqa": True, "is_causal": True, "scale": 0.3},
}


@pytest.mark.parametrize("opset", [20, 23], ids=["by matrix products", "one operator"])
@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_keys_and_values_have_one_length_and_it_stays_free(options, opset):
    """The kernel of torch reads beyond the end of the values where there are fewer of them than keys."""

    def forward(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, **options)

    shared = 2 if options.get("enable_gqa") else 4
    program = trueport.export(
        forward, heads(2, 3, 5, shared=shared), dynamic_shapes=(LENGTHS,) * 3, opset_version=opset
    )
    assert any(found.code == "TP303" and "k_dim2 = v_dim2" in found.message for found in program.report.diagnostics)
    others = heads(1, 7, 2, shared=shared)
    torch.testing.assert_close(program(*others), forward(*others), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes(dtype):
    report = trueport.check(F.scaled_dot_product_attention, heads(2, 3, 5, dtype, shared=4))
    assert report.verified


def test_the_width_of_the_heads_may_be_free_and_nothing():
    """ONNX Runtime's product with a transposed matrix leaves what the memory held, where there is nothing to sum."""

    def forward(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    wide = {0: DYNAMIC, 1: DYNAMIC, 2: DYNAMIC}
    program = trueport.export(
        forward, (torch.randn(4, 3, 8), torch.randn(4, 6, 8), torch.randn(4, 6, 5)), dynamic_shapes=(wide,) * 3
    )
    for width in (7, 0):
        others = (torch.randn(5, 2, width), torch.randn(5, 3, width), torch.randn(5, 3, 4))
        torch.testing.assert_close(program(*others), forward(*others), rtol=1e-4, atol=1e-5)


class Attends(torch.nn.Module):
    """Attention among those that a mask selects, who may be nobody."""

    def __init__(self, weights):
        super().__init__()
        self.attention, self.weights = torch.nn.MultiheadAttention(8, 2), weights

    def forward(self, x, mask):
        chosen = x[mask]
        return self.attention(chosen, chosen, chosen, need_weights=self.weights)[0]


class HeadsFirst(torch.nn.Module):
    def forward(self, x, mask):
        chosen = x[mask].view(-1, 2, 4).transpose(0, 1)
        return F.scaled_dot_product_attention(chosen, chosen, chosen)


@pytest.mark.parametrize("opset", [20, 23])
@pytest.mark.parametrize("model", [Attends(True), Attends(False), HeadsFirst()], ids=["weights", "plain", "by hand"])
def test_nobody_is_selected(model, opset):
    """The runtime joins a transposed batch with the product, and its process dies of nothing; ONNX's Attention refuses
    nothing. Neither is written where only values tell how many there are."""
    x, mask = torch.randn(5, 8), torch.tensor([True, False, True, True, False])
    sizes = ({0: "people"}, {0: "people"})
    program = trueport.export(model.eval(), (x, mask), dynamic_shapes=sizes, opset_version=opset)
    assert not program.report.diagnostics, program.report
    assert program(x, torch.zeros(5, dtype=torch.bool)).numel() == 0


def repeated(x, times):
    """As transformers writes it."""
    batch, heads, length, width = x.shape
    return x[:, :, None].expand(batch, heads, times, length, width).reshape(batch, heads * times, length, width)


GROUPED = {
    "asked for": lambda q, k, v, **options: F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options),
    "repeated": lambda q, k, v, **options: F.scaled_dot_product_attention(q, repeated(k, 3), repeated(v, 3), **options),
}
CACHES = ({0: "b", 2: "s"}, {0: "b", 2: "t"}, {0: "b", 2: "t"})


@pytest.mark.parametrize("opset", [13, 20, 23])
@pytest.mark.parametrize("grouped", GROUPED)
def test_shared_keys_and_values_are_not_repeated(grouped, opset):
    """A cache is large, and a step reads all of it: it is read as it is, whoever asks for the repetition."""

    def forward(q, k, v, mask):
        attend = GROUPED[grouped]
        return attend(q, k, v), attend(q, k, v, is_causal=True), attend(q, k, v, attn_mask=mask, scale=0.3)

    def given(batch, queries, keys):
        shapes = (batch, 6, queries, 4), (batch, 2, keys, 4), (batch, 2, keys, 4), (batch, 1, queries, keys)
        return tuple(torch.linspace(-2, 2, math.prod(shape)).sin().reshape(shape) for shape in shapes)

    free = dict(enumerate((*CACHES, {0: "b", 2: "s", 3: "t"})))
    others = [given(1, 1, 7), given(2, 5, 5), *([given(0, 2, 3), given(1, 0, 3)] if opset < 23 else [])]
    model = check(forward, given(2, 3, 5), *others, free=free, opset=opset)
    written = [node.op_type for node in model.graph]
    # What is left to broadcast are pieces of shapes, in the forms of opset 13.
    wide = [node for node in model.graph if node.op_type == "Expand" and node.outputs[0].dtype == ir.DataType.FLOAT]
    assert not wide, written


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_grouped_heads_in_other_dtypes(dtype):
    shapes = (2, 6, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4)
    q, k, v = (torch.linspace(-2, 2, math.prod(shape)).cos().reshape(shape).to(dtype) for shape in shapes)
    loose = {torch.float64: 1e-12, torch.float16: 1e-2, torch.bfloat16: 5e-2}[dtype]
    for attend in GROUPED.values():
        check(attend, (q, k, v), free=dict(enumerate(CACHES)), rtol=loose, atol=loose)


@pytest.mark.parametrize("opset", [20, 23])
def test_what_is_repeated_otherwise_stays(opset):
    """Heads of keys that take turns, keys and values repeated by different numbers, and a user's own slice."""

    def forward(q, k, v, one):
        turns = k[:, None].expand(2, 3, 2, 5, 4).reshape(2, 6, 5, 4)
        cut = repeated(k[:, :, 1:], 3)
        return (
            F.scaled_dot_product_attention(q, turns, turns),
            F.scaled_dot_product_attention(q, repeated(k, 3), repeated(one, 6)),
            F.scaled_dot_product_attention(q, cut, repeated(v[:, :, 1:], 3)),
        )

    shapes = (2, 6, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (2, 1, 5, 4)
    check(forward, tuple(torch.linspace(-2, 2, math.prod(shape)).sin().reshape(shape) for shape in shapes), opset=opset)


@pytest.mark.parametrize("shared", [1, 2])
def test_masks_of_every_form_meet_grouped_heads(shared):
    """Queries of several heads are rows of one product. A mask that is the same for all heads is repeated for them; one
    that is not, or that would grow as large as the scores, finds the heads apart."""

    def forward(q, k, v, rows, padding, heads):
        attend = functools.partial(F.scaled_dot_product_attention, q, k, v, enable_gqa=True)
        return attend(attn_mask=rows), attend(attn_mask=padding), attend(attn_mask=heads), attend(attn_mask=rows > 0)

    def given(batch, queries, keys):
        shapes = (batch, 6, queries, 4), (batch, shared, keys, 4), (batch, shared, keys, 4)
        q, k, v = (torch.linspace(-2, 2, math.prod(shape)).sin().reshape(shape) for shape in shapes)
        masks = (queries, keys), (batch, 1, 1, keys), (1, 6, queries, keys)
        rows, padding, heads = (torch.linspace(-2, 3, math.prod(shape)).cos().reshape(shape) for shape in masks)
        rows[-1:] = -math.inf  # a query that every key is masked for
        return q, k, v, rows, padding, heads

    sizes = (*CACHES, {0: "s", 1: "t"}, {0: "b", 3: "t"}, {2: "s", 3: "t"})
    others = [given(1, 1, 7), given(2, 5, 5), given(0, 2, 3), given(1, 0, 3)]
    check(forward, given(2, 3, 5), *others, free=dict(enumerate(sizes)), rtol=1e-4, atol=1e-5)
